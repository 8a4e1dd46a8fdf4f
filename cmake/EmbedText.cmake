# cmake -DOUT=file.cpp -DNAMESPACE=a::b -DFILES=name=path;... -P EmbedText.cmake: writes a source that defines
# `const std::string_view name` for each file.
set(text "#include <string_view>\n\nnamespace ${NAMESPACE} {\n")
foreach(item IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.*)$" _ "${item}")
  file(READ "${CMAKE_MATCH_2}" content)
  string(APPEND text "extern const std::string_view ${CMAKE_MATCH_1};\n"
    "const std::string_view ${CMAKE_MATCH_1} = R\"embedded(${content})embedded\";\n")
endforeach()
string(APPEND text "}  // namespace ${NAMESPACE}\n")
file(WRITE "${OUT}" "${text}")
