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

run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
# Each public header is there, and needs nothing but the others and the CUDA toolkit's (GoogleTest's where it is for tests).
file(GLOB public RELATIVE "${SOURCE}/include" "${SOURCE}/include/cuaudit/*.h")
set(all "")
foreach(header IN LISTS public)
  if(NOT EXISTS "${prefix}/include/${header}")
    message(FATAL_ERROR "include/${header} is not installed: add it to public_headers in cmake/Package.cmake")
  endif()
  string(APPEND all "#include <${header}>\n")
endforeach()
if(NOT all)
  message(FATAL_ERROR "${SOURCE}/include/cuaudit has no header")
endif()
file(WRITE "${BUILD}/package/all_headers.cc" "${all}")
run("compile all headers" "${CXX}" -std=c++20 -fsyntax-only -I "${prefix}/include" -isystem "${CUDA}" "${BUILD}/package/all_headers.cc")
file(GLOB_RECURSE headers "${prefix}/include/*")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" private REGEX "#[ ]*include +\"(faults|harness|reports|suites|driver_)")
  if(private)
    message(FATAL_ERROR "${header}: includes what is not installed: ${private}")
  endif()
endforeach()
run("configure" "${CMAKE_COMMAND}" -S "${EXAMPLES}" -B "${project}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCUAUDIT_CUDA_INCLUDE=${CUDA}"
  "-DCMAKE_C_COMPILER=${C}" "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_C_COMPILER_LAUNCHER=${C_LAUNCHER}"
  "-DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER}")
# As FetchContent takes it, from the sources: it configures, and code that uses it compiles against what it generates. Linking that would build
# all of cuaudit once more; the libraries come from the very targets that were installed above.
run("configure from the sources" "${CMAKE_COMMAND}" -S "${EXAMPLES}" -B "${project}_from_sources" -G "${GENERATOR}" "-DCUAUDIT_SOURCE=${SOURCE}"
  "-DCUAUDIT_CUDA_INCLUDE=${CUDA}" "-DCMAKE_C_COMPILER=${C}" "-DCMAKE_CXX_COMPILER=${CXX}")
if(GENERATOR STREQUAL "Ninja")  # others have no targets for single objects
  set(objects "CMakeFiles/frame_pool_test.dir")
  run("compile from the sources" "${CMAKE_COMMAND}" --build "${project}_from_sources"
    --target "${objects}/frame_pool.cc.o" --target "${objects}/frame_pool_test.cc.o" --target cuaudit_public_headers)
endif()
run("build" "${CMAKE_COMMAND}" --build "${project}")
# What a project may write wrong is said while it configures.
set(wrong "${BUILD}/package/wrong")
foreach(case "CONFIG none.toml|none.toml: not found" "CASES one|cuaudit.toml: not found" "NAME|expected .NAME name." "TAGS|expected .NAME name." "one|expected .NAME name.")
  string(REPLACE "|" ";" case "${case}")
  list(GET case 0 arguments)
  list(GET case 1 expected)
  file(REMOVE_RECURSE "${wrong}")
  file(WRITE "${wrong}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)\nproject(wrong NONE)\ninclude(\"${prefix}/lib/cmake/cuaudit/CuauditTesting.cmake\")\n"
    "enable_testing()\ncuaudit_add_audit(${arguments})\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${wrong}" -B "${wrong}/build" -G "${GENERATOR}" RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")  # CMake breaks lines
  if(result EQUAL 0 OR NOT output MATCHES "${expected}")
    message(FATAL_ERROR "cuaudit_add_audit(${arguments}): ${result}, expected an error with '${expected}'\n${output}")
  endif()
endforeach()
run("test" "${CMAKE_CTEST_COMMAND}" --test-dir "${project}" --output-on-failure)
# The audit was of the cases with that tag, and of no others.
file(READ "${project}/release_audit.audit/audit.json" audited)
string(JSON reports LENGTH "${audited}" cases 0 reports)
string(JSON why ERROR_VARIABLE none GET "${audited}" cases 1 not_run)
if(NOT reports EQUAL 1 OR NOT why)
  message(FATAL_ERROR "release_audit: expected a report of the first case and none of the second one:\n${audited}")
endif()
