# autotune_layer(NAME SOURCES ... LINK ... PRIVATE ...): the library autotune_NAME with the alias autotune::NAME.
# LINK is what its headers need, PRIVATE what only its sources need.
function(autotune_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRIVATE" ${ARGN})
  add_library(autotune_${name} STATIC ${arg_SOURCES})
  add_library(autotune::${name} ALIAS autotune_${name})
  set_target_properties(autotune_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(autotune_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  autotune_link_items(public ${arg_LINK})
  autotune_link_items(private ${arg_PRIVATE})
  target_link_libraries(autotune_${name} PUBLIC ${public} PRIVATE ${private})
  target_compile_features(autotune_${name} PUBLIC cxx_std_20)  # public headers want it of an application, too
  autotune_compile_options(autotune_${name})
  if(AUTOTUNE_PRECOMPILED)
    autotune_precompile(autotune_${name} layer)
  endif()
endfunction()

# autotune_link_items(OUT items...): the items as target_link_libraries takes them. What is headers only is needed to
# build here and not by an application, for no public header includes it; in a static build that holds for fmt too.
function(autotune_link_items out)
  set(items "")
  foreach(item IN LISTS ARGN)
    if(item STREQUAL "fmt::fmt" AND AUTOTUNE_STATIC)
      list(APPEND items $<BUILD_INTERFACE:fmt::fmt-header-only>)
    elseif(item MATCHES "^(nlohmann_json::nlohmann_json|CLI11::CLI11|Eigen3::Eigen|autotune_toml|autotune_cuda_headers)$")
      list(APPEND items $<BUILD_INTERFACE:${item}>)
    else()
      list(APPEND items ${item})
    endif()
  endforeach()
  set(${out} ${items} PARENT_SCOPE)
endfunction()

# autotune_program(NAME SOURCES ... LINK ...): the program NAME.
function(autotune_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  autotune_link_items(items ${arg_LINK})
  target_link_libraries(${name} PRIVATE ${items})
  autotune_compile_options(${name})
  if(AUTOTUNE_STATIC)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# autotune_test(NAME SOURCES ... LINK ... LABELS ... TIMEOUT seconds): one test program of GoogleTest, its tests named
# by ctest one by one. The label `gpu` marks tests that need a device (they skip by name without one).
function(autotune_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  autotune_test_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE AUTOTUNE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" AUTOTUNE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  autotune_label(${name} ${arg_LABELS})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

# autotune_test_program(NAME SOURCES ... LINK ...): a program of the tests. Its own code is not optimised: it is compiled
# more often than run.
function(autotune_test_program name)
  autotune_program(${name} ${ARGN})
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  if(AUTOTUNE_PRECOMPILED)
    autotune_precompile(${name} test)
  endif()
endfunction()

# autotune_label(TARGET labels...): `hostile` reads files or frames, so `make test` also runs it under the address
# sanitizer; `threads` runs under tsan; `gpu` needs a device. The target LABEL_tests builds what each needs.
function(autotune_label target)
  foreach(label gpu hostile threads)
    if(label IN_LIST ARGN)
      if(NOT TARGET ${label}_tests)
        add_custom_target(${label}_tests)
      endif()
      add_dependencies(${label}_tests ${target})
    endif()
  endforeach()
endfunction()

# autotune_compile_lightly(TARGET): for code that runs once, of which a build waits longer than anybody for its work.
function(autotune_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

function(autotune_compile_options target)
  if(AUTOTUNE_UNITY)
    # Most of a source's compile time goes into the templates that its neighbours need too. Names in unnamed namespaces
    # are therefore unique in a library.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow
    -Wno-missing-field-initializers -Wno-dangling-else>)  # designated initialisers name what differs from the default
  # GCC 12 warns of overlapping copies in its own std::string where code is optimised (its bug 105651).
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<NOT:$<CONFIG:Debug>>>:-Wno-restrict>)
  # Messages and errors name sources from the root of this tree. Debug information needs the whole path.
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
  if(AUTOTUNE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  if(AUTOTUNE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # libFuzzer steers by the library's coverage
  endif()
  if(AUTOTUNE_STATIC)  # programs that are carried elsewhere are small
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
    target_link_options(${target} PRIVATE -Wl,--gc-sections)
  endif()
  if(AUTOTUNE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${AUTOTUNE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${AUTOTUNE_SANITIZE})
  endif()
endfunction()

# autotune_fuzz(NAME SOURCES ... LINK ... CORPUS folder): the fuzz target NAME_fuzz, a source with
# LLVMFuzzerTestOneInput. With AUTOTUNE_FUZZ it is linked with libFuzzer, which makes inputs up; otherwise with a main
# that feeds it every file of the corpus and changed versions of each for 5 s, and that is run as a test.
function(autotune_fuzz name)
  cmake_parse_arguments(arg "" "CORPUS" "SOURCES;LINK" ${ARGN})
  if(AUTOTUNE_FUZZ)
    autotune_program(${name}_fuzz SOURCES ${arg_SOURCES} LINK ${arg_LINK})
    target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzz_targets)
      add_custom_target(fuzz_targets)
    endif()
    add_dependencies(fuzz_targets ${name}_fuzz)
  else()
    autotune_test_program(${name}_fuzz SOURCES ${arg_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus_main.cpp
      LINK ${arg_LINK})
    autotune_label(${name}_fuzz hostile)
    add_test(NAME fuzz.${name} COMMAND ${name}_fuzz --seconds 5 ${arg_CORPUS})
    set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 300 LABELS "fuzz;hostile")
  endif()
endfunction()
