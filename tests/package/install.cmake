# cmake -DBUILD=folder -DPREFIX=folder -P install.cmake: installs a build into an empty folder, and looks whether what a
# person would look for is there.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} --strip OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(pattern include/autotune/autotune.h include/autotune/dispatcher.h include/autotune/error.h include/autotune/reference.h include/autotune/reference.hpp
    autotuneConfig.cmake autotuneConfigVersion.cmake libautotune_dispatcher.a libautotune.so
    libautotune.so.1 autotune.pc share/man/man1/autotune.1 share/man/man1/autotune-tune.1
    share/man/man1/autotune-db-path.1 share/bash-completion/completions/autotune share/zsh/site-functions/_autotune
    share/fish/vendor_completions.d/autotune.fish)
  cmake_path(GET pattern PARENT_PATH folder)
  cmake_path(GET pattern FILENAME name)
  file(GLOB_RECURSE found ${PREFIX}/${folder}/${name})
  if(NOT found)
    message(FATAL_ERROR "${pattern} was not installed")
  endif()
endforeach()
