#!/bin/sh
# Compiles reducer.c and audits it on the simulated driver. Exit status 1: the defect shows.
#   CUDA_HOME   the CUDA toolkit, for cuda.h; /usr/local/cuda when it is not set
#   CUAUDIT     the tool; cuaudit in PATH when it is not set
set -eu
cd "$(dirname "$0")"
cuaudit=$(command -v "${CUAUDIT:-cuaudit}")
libraries=$(dirname "$cuaudit")/../lib/cuaudit
${CC:-cc} -g reducer.c -o reducer -I"${CUDA_HOME:-/usr/local/cuda}/include" -L"$libraries" -lcuda
exec "$cuaudit" replay --driver=sim --fault 'cuEventCreate#1=OUT_OF_MEMORY,refuse' -- ./reducer
