# Everything comes from the system's packages; scripts/setup.sh installs what is missing.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(SQLite3 3.37 REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
find_package(Sodium REQUIRED)
find_package(ZLIB REQUIRED)

# With AUTOTUNE_STATIC, a program built here runs where fmt, SQLite and libsodium are missing. An application that links
# an installed library takes its own system's in either case. fmt, which Debian has as a shared library only, is then taken
# as headers (autotune_link_items).
if(AUTOTUNE_STATIC)
  find_library(AUTOTUNE_SODIUM_ARCHIVE libsodium.a REQUIRED)
  find_library(AUTOTUNE_SQLITE_ARCHIVE libsqlite3.a REQUIRED)
  set(_sodium ${AUTOTUNE_SODIUM_ARCHIVE})
  set(_sqlite ${AUTOTUNE_SQLITE_ARCHIVE})
else()
  set(_sodium Sodium::Sodium)
  set(_sqlite SQLite::SQLite3)
endif()
add_library(autotune_sodium INTERFACE)
target_include_directories(autotune_sodium SYSTEM INTERFACE $<BUILD_INTERFACE:${SODIUM_INCLUDE}>)
target_link_libraries(autotune_sodium INTERFACE $<BUILD_INTERFACE:${_sodium}> $<INSTALL_INTERFACE:Sodium::Sodium>)
set_target_properties(autotune_sodium PROPERTIES EXPORT_NAME sodium)
add_library(autotune_sqlite INTERFACE)
target_include_directories(autotune_sqlite SYSTEM INTERFACE $<BUILD_INTERFACE:${SQLite3_INCLUDE_DIRS}>)
target_link_libraries(autotune_sqlite INTERFACE $<BUILD_INTERFACE:${_sqlite}> $<INSTALL_INTERFACE:SQLite::SQLite3>
  m ${CMAKE_DL_LIBS})
set_target_properties(autotune_sqlite PROPERTIES EXPORT_NAME sqlite)
add_library(autotune_toml INTERFACE)
target_include_directories(autotune_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_INCLUDE})
target_compile_definitions(autotune_toml INTERFACE TOML_HEADER_ONLY=1)

# cuda.h and nvrtc.h: types only. The driver and NVRTC are opened at run time.
if(AUTOTUNE_CUDA_INCLUDE)
  set(AUTOTUNE_CUDA_HEADERS ${AUTOTUNE_CUDA_INCLUDE})
else()
  file(GLOB _autotune_wheels ${PROJECT_SOURCE_DIR}/build/cuda/lib/python3*/site-packages/nvidia/cu13/include
    ${PROJECT_BINARY_DIR}/cuda/lib/python3*/site-packages/nvidia/cu13/include)
  # The places where scripts/setup.sh looks come first: a system's own packages may be of CUDA 11.
  find_path(AUTOTUNE_CUDA_HEADERS cuda.h PATHS ${_autotune_wheels}
    ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include PATH_SUFFIXES include
    NO_DEFAULT_PATH)
  find_path(AUTOTUNE_CUDA_HEADERS cuda.h)
endif()
if(NOT AUTOTUNE_CUDA_HEADERS)
  message(FATAL_ERROR "cuda.h was not found: run scripts/setup.sh, or set AUTOTUNE_CUDA_INCLUDE to the folder that holds it")
endif()
add_library(autotune_cuda_headers INTERFACE)
target_include_directories(autotune_cuda_headers SYSTEM INTERFACE ${AUTOTUNE_CUDA_HEADERS})

# NVRTC of the wheels, for what runs outside the build folder: programs in it find these wheels by themselves. Empty where
# a toolkit is used.
file(GLOB AUTOTUNE_WHEEL_NVRTC ${PROJECT_SOURCE_DIR}/build/cuda/lib/python3*/site-packages/nvidia/cu13/lib
  ${PROJECT_BINARY_DIR}/cuda/lib/python3*/site-packages/nvidia/cu13/lib)
list(SUBLIST AUTOTUNE_WHEEL_NVRTC 0 1 AUTOTUNE_WHEEL_NVRTC)
if(AUTOTUNE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(AUTOTUNE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

find_program(AUTOTUNE_CCACHE ccache)
if(AUTOTUNE_CCACHE AND AUTOTUNE_PRECOMPILED)  # ccache knows what is in precompiled headers only when told to look
  list(PREPEND AUTOTUNE_CCACHE ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
if(AUTOTUNE_CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${AUTOTUNE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${AUTOTUNE_CCACHE})
endif()
find_program(AUTOTUNE_MOLD mold)
if(AUTOTUNE_MOLD AND PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  add_link_options(-fuse-ld=mold)
endif()
