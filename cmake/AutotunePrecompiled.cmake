# With AUTOTUNE_PRECOMPILED, the headers that nearly every source includes are read once for the libraries and once for
# the tests. Builds that a person waits for have it; `dev` has not, so that a forgotten #include is noticed.
set(_standard <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <string> <string_view> <thread> <unordered_map> <variant> <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "int main() { return 0; }\n")

# The compiler takes precompiled headers only where its options are those they were made with, so they are made by
# targets of the same kinds: a library's code and a program's differ in -fPIC and -fPIE.
add_library(autotune_precompiled_layer OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
autotune_link_items(_items fmt::fmt)
target_link_libraries(autotune_precompiled_layer PRIVATE ${_items})
target_precompile_headers(autotune_precompiled_layer PRIVATE ${_standard} <nlohmann/json.hpp>)
autotune_compile_options(autotune_precompiled_layer)
if(AUTOTUNE_TESTS)
  add_executable(autotune_precompiled_test EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(autotune_precompiled_test PRIVATE ${_items} GTest::gtest GTest::gmock)
  target_precompile_headers(autotune_precompiled_test PRIVATE ${_standard} <gtest/gtest.h> <gmock/gmock.h>)
  autotune_compile_options(autotune_precompiled_test)
  target_compile_options(autotune_precompiled_test PRIVATE $<$<CONFIG:Release>:-O0>)
endif()

# autotune_precompile(TARGET layer|test): also gives the target the definitions that fmt's users have, which it needs to
# be compiled with even where it does not link fmt.
function(autotune_precompile target kind)
  set(fmt fmt::fmt)
  if(AUTOTUNE_STATIC)
    set(fmt fmt::fmt-header-only)
  endif()
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:${fmt},INTERFACE_COMPILE_DEFINITIONS>)
  if(kind STREQUAL test)  # and GoogleTest's, for the programs of the tests that do without it
    target_compile_options(${target} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_OPTIONS>)
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:GTest::gtest,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
  target_precompile_headers(${target} REUSE_FROM autotune_precompiled_${kind})
endfunction()
