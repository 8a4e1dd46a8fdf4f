# What `cmake --install` lays down: include/autotune, libautotune.so, the static libraries that a C++ application links
# with what these need, bin/autotune with its man pages and completions, libexec/autotune/autotune-worker (where
# find_worker looks), and the files by which CMake and pkg-config find it.
include(CMakePackageConfigHelpers)

# autotune_closure(OUT targets...): the targets, and the libraries of this tree that they link.
function(autotune_closure out)
  set(open ${ARGN})
  set(seen "")
  while(open)
    list(POP_FRONT open target)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(aliased ${target} ALIASED_TARGET)
    if(aliased)
      set(target ${aliased})
    endif()
    get_target_property(imported ${target} IMPORTED)
    if(imported OR target IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${target})
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(linked ${target} ${property})
      if(linked)
        string(REGEX REPLACE "\\$<LINK_ONLY:([^>]*)>" "\\1" linked "${linked}")
        list(APPEND open ${linked})
      endif()
    endforeach()
  endwhile()
  set(${out} ${seen} PARENT_SCOPE)
endfunction()

file(GLOB _headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/autotune/*)
target_sources(autotune_model PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${_headers})

autotune_closure(AUTOTUNE_INSTALLED autotune_dispatcher autotune_tuning autotune_tuner autotune_sharing autotune_store autotune_device autotune_model)
install(TARGETS ${AUTOTUNE_INSTALLED} EXPORT autotuneTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

# By itself: who links it needs none of what it was built with.
install(TARGETS autotune_shared EXPORT autotuneSharedTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development)

if(TARGET autotune)
  install(TARGETS autotune RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/docs/json-lines.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/autotune)
  install(DIRECTORY ${AUTOTUNE_SHARE}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${AUTOTUNE_SHARE}/completion/autotune DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${AUTOTUNE_SHARE}/completion/_autotune DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${AUTOTUNE_SHARE}/completion/autotune.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
if(TARGET autotune-worker)
  install(TARGETS autotune-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/autotune)
endif()

# All of that and no more: an install waits for no test.
add_custom_target(installed DEPENDS ${AUTOTUNE_INSTALLED} autotune_shared)
foreach(_target autotune autotune-manual autotune-worker)
  if(TARGET ${_target})
    add_dependencies(installed ${_target})
  endif()
endforeach()

set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/autotune)
set(AUTOTUNE_FIND_FMT "find_dependency(fmt)")
if(AUTOTUNE_STATIC)
  set(AUTOTUNE_FIND_FMT "")  # compiled in
endif()
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/autotuneConfig.cmake.in ${PROJECT_BINARY_DIR}/autotuneConfig.cmake
  INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/autotuneConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/autotuneConfig.cmake ${PROJECT_BINARY_DIR}/autotuneConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindSodium.cmake DESTINATION ${_package} COMPONENT development)
install(EXPORT autotuneTargets NAMESPACE autotune:: DESTINATION ${_package} COMPONENT development)
install(EXPORT autotuneSharedTargets NAMESPACE autotune:: DESTINATION ${_package} COMPONENT development)

# From its own place, so that an installed tree can be moved.
set(_pkgconfig ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(_folder LIBDIR INCLUDEDIR)
  file(RELATIVE_PATH AUTOTUNE_PC_${_folder} /prefix/${_pkgconfig} /prefix/${CMAKE_INSTALL_${_folder}})
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/autotune.pc.in ${PROJECT_BINARY_DIR}/autotune.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/autotune.pc DESTINATION ${_pkgconfig} COMPONENT development)
