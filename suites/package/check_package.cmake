# SPDX-License-Identifier: MIT
# check_package.cmake: installs the build into a directory of its own, builds examples/ against that and runs its tests.
set(prefix "${BUILD}/package/prefix")
set(project "${BUILD}/package/examples")
file(REMOVE_RECURSE "${prefix}" "${project}" "${project}_from_sources")

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
  message(STATUS "${what}: done")
endfunction()

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()
run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
file(GLOB_RECURSE headers "${prefix}/include/*")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" private REGEX "#[ ]*include +\"(faults|harness|reports|suites|driver_)")
  if(private)
    message(FATAL_ERROR "${header}: includes what is not installed: ${private}")
  endif()
endforeach()
run("configure" "${CMAKE_COMMAND}" -S "${EXAMPLES}" -B "${project}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCUAUDIT_CUDA_INCLUDE=${CUDA}"
  "-DCMAKE_C_COMPILER=${C}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_C_COMPILER_LAUNCHER=${C_LAUNCHER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER}" "-DCMAKE_CXX_FLAGS=${flags}")
# As FetchContent takes it, from the sources; building all of that once more would show nothing new.
run("configure from the sources" "${CMAKE_COMMAND}" -S "${EXAMPLES}" -B "${project}_from_sources" -G "${GENERATOR}" "-DCUAUDIT_SOURCE=${SOURCE}"
  "-DCUAUDIT_CUDA_INCLUDE=${CUDA}" "-DCMAKE_C_COMPILER=${C}" "-DCMAKE_CXX_COMPILER=${CXX}")
run("build" "${CMAKE_COMMAND}" --build "${project}")
run("test" "${CMAKE_CTEST_COMMAND}" --test-dir "${project}" --output-on-failure)
