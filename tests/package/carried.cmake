# cmake -DBUILD=folder -DFOLDER=folder -DEXAMPLES=folder -DINTO=folder -DGENERATOR=... -DMAKE=... -DC=... -DCXX=...
#   -DSODIUM=archive -DSQLITE=archive -P carried.cmake
# installs a static build, and builds the examples against that as any application is built, for a machine that has the
# C library alone.
file(REMOVE_RECURSE ${FOLDER})
foreach(component Unspecified development)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${FOLDER}/prefix --component ${component}
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(MAKE_DIRECTORY ${INTO})
foreach(example dispatch_c dispatch_softmax)
  execute_process(COMMAND ${CMAKE_COMMAND} --no-warn-unused-cli -S ${EXAMPLES}/${example} -B ${FOLDER}/${example} -G ${GENERATOR}
      -DCMAKE_PREFIX_PATH=${FOLDER}/prefix -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=${C} -DCMAKE_CXX_COMPILER=${CXX}
      -DCMAKE_MAKE_PROGRAM=${MAKE} -DSODIUM_LIBRARY=${SODIUM} -DSQLite3_LIBRARY=${SQLITE}
      "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc"
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/${example} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(COPY ${FOLDER}/${example}/${example} DESTINATION ${INTO})
endforeach()
