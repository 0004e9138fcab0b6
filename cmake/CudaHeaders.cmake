# SPDX-License-Identifier: MIT
# Finds the CUDA toolkit's headers. They are needed to build; libcuda never is, it is only ever opened at run time.
find_path(CUAUDIT_CUDA_INCLUDE cuda.h
  HINTS "$ENV{CUDA_HOME}/include" "$ENV{CUDA_PATH}/include" /usr/local/cuda/include
  DOC "Include directory of a CUDA toolkit, 12.4 or newer")
if(NOT CUAUDIT_CUDA_INCLUDE OR NOT EXISTS "${CUAUDIT_CUDA_INCLUDE}/cudaTypedefs.h")
  message(FATAL_ERROR "cuda.h and cudaTypedefs.h not found: install a CUDA toolkit, 12.4 or newer, or point CUDA_HOME at one. "
    "Only its headers are needed.")
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
