# SPDX-License-Identifier: MIT
# check_alloc.cmake: installs the component `alloc` by itself, and builds examples/alloc against it by find_package and by pkg-config.
set(prefix "${BUILD}/package/alloc_prefix")
set(project "${BUILD}/package/alloc_example")
file(REMOVE_RECURSE "${prefix}" "${project}")

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}${errors}")
  endif()
  message(STATUS "${what}: done")
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The drop-in stands in for a driver.
function(expect_it_runs program)
  run("run ${program}" "${CMAKE_COMMAND}" -E env "LD_LIBRARY_PATH=${BUILD}/lib/cuaudit" "CUAUDIT_OPTIONS=driver=sim" "${program}")
  if(NOT output STREQUAL "allocation.all.allocated 1\nuses_recorded 1\nthe reader saw 7\n")
    message(FATAL_ERROR "${program} printed:\n${output}")
  endif()
endfunction()

run("install" "${CMAKE_COMMAND}" --install "${BUILD}" --component alloc --prefix "${prefix}")
file(GLOB_RECURSE files RELATIVE "${prefix}" "${prefix}/*")
list(FILTER files EXCLUDE REGEX "^(include/cuaudit/(alloc|driver|memory_resource|rmm_resource)\\.h|lib/libcuaudit_alloc\\.a|lib/cuaudit/libcuaudit_allocator\\.so|lib/pkgconfig/cuaudit-alloc\\.pc|lib/cmake/cuaudit_alloc/.*)$")
if(files)
  message(FATAL_ERROR "installed beyond the allocator: ${files}")
endif()
file(GLOB headers "${prefix}/include/cuaudit/*.h")
foreach(header IN LISTS headers)
  file(STRINGS "${header}" private REGEX "#[ ]*include +\"")
  if(private)
    message(FATAL_ERROR "${header}: includes what is not installed: ${private}")
  endif()
endforeach()

run("configure" "${CMAKE_COMMAND}" -S "${EXAMPLE}" -B "${project}" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCUAUDIT_CUDA_INCLUDE=${CUDA}"
  "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER}")
run("build" "${CMAKE_COMMAND}" --build "${project}")
expect_it_runs("${project}/two_streams")

run("ask pkg-config" "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${prefix}/lib/pkgconfig" pkg-config --cflags --libs cuaudit-alloc)
separate_arguments(told UNIX_COMMAND "${output}")
run("build by pkg-config" "${CXX}" -std=c++20 "${EXAMPLE}/two_streams.cc" -o "${project}/by_pkg_config" ${told})
expect_it_runs("${project}/by_pkg_config")
