#!/bin/bash
# SPDX-License-Identifier: MIT
# Run by OSS-Fuzz in the project's folder, with CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE and OUT. cuaudit lies beside the project and is
# built with the same instrumentation, so that it guides the fuzzer too; fmt is compiled along, since the C++ library is not the
# distribution's. The image that runs the program has not the shared objects of this one: those go along, in lib/.
set -euo pipefail
cmake -S . -B build -G Ninja -DCUAUDIT_SOURCE="$SRC/cuaudit" -DFUZZ_FLAGS= -DFUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_CXX_FLAGS="$CXXFLAGS -DFMT_HEADER_ONLY" \
  -DCMAKE_BUILD_RPATH='$ORIGIN/lib;$ORIGIN' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build build --target frame_pool_fuzz
mkdir -p "$OUT/lib"
cp build/frame_pool_fuzz "$OUT/"
ldd build/frame_pool_fuzz |
  awk '/not found/ { exit 1 } $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread)\.so/ { print $3 }' | xargs -r cp -L -t "$OUT/lib"
printf '[libfuzzer]\nmax_len = 64\n' >"$OUT/frame_pool_fuzz.options"
readelf -d "$OUT/frame_pool_fuzz" | grep -F 'rpath: [$ORIGIN/lib' >/dev/null
