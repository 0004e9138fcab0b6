# SPDX-License-Identifier: MIT
# Finds the CUDA toolkit's headers. They are needed to build; libcuda never is, it is only ever opened at run time. Where to look, and in which
# order, is written in scripts/find_cuda_headers alone; nothing is installed or fetched from here.
set(_oldest 12.4)
if(CUAUDIT_TESTS)
  set(_oldest 13.0)  # the suites call DriverRef with the signatures of 13.0
endif()
# A directory that was found, not given, is looked for again each time: what the machine has, or CUDA_HOME, may have changed.
if(CUAUDIT_CUDA_INCLUDE STREQUAL CUAUDIT_CUDA_FOUND)
  unset(CUAUDIT_CUDA_INCLUDE CACHE)
endif()
if(NOT CUAUDIT_CUDA_INCLUDE)
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/find_cuda_headers" --look --at-least ${_oldest}
    OUTPUT_VARIABLE _include OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE _line ERROR_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _result)
  if(NOT _result EQUAL 0)
    message(FATAL_ERROR "${_line}")
  endif()
  set(CUAUDIT_CUDA_INCLUDE "${_include}" CACHE PATH "Include directory of a CUDA toolkit, 12.4 or newer" FORCE)
  set(CUAUDIT_CUDA_FOUND "${_include}" CACHE INTERNAL "What scripts/find_cuda_headers said")
endif()
if(NOT EXISTS "${CUAUDIT_CUDA_INCLUDE}/cuda.h" OR NOT EXISTS "${CUAUDIT_CUDA_INCLUDE}/cudaTypedefs.h")
  message(FATAL_ERROR "CUAUDIT_CUDA_INCLUDE=${CUAUDIT_CUDA_INCLUDE}: no cuda.h and cudaTypedefs.h, expected the include directory of a CUDA toolkit")
endif()
file(STRINGS "${CUAUDIT_CUDA_INCLUDE}/cuda.h" _version REGEX "^#define CUDA_VERSION [0-9]+")
string(REGEX REPLACE ".* ([0-9]+)$" "\\1" CUAUDIT_CUDA_VERSION "${_version}")
message(STATUS "CUDA headers ${CUAUDIT_CUDA_VERSION} in ${CUAUDIT_CUDA_INCLUDE}")
if(CUAUDIT_CUDA_VERSION LESS 12040)
  message(FATAL_ERROR "${CUAUDIT_CUDA_INCLUDE}: CUDA_VERSION ${CUAUDIT_CUDA_VERSION} found, 12040 or newer expected")
endif()
if(CUAUDIT_TESTS AND CUAUDIT_CUDA_VERSION LESS 13000)
  message(FATAL_ERROR "${CUAUDIT_CUDA_INCLUDE}: CUDA_VERSION ${CUAUDIT_CUDA_VERSION} found, and the suites call DriverRef with the signatures "
    "of 13000 or newer: configure with -DCUAUDIT_TESTS=OFF for the program and the libraries, or point CUAUDIT_CUDA_INCLUDE at newer headers")
endif()
