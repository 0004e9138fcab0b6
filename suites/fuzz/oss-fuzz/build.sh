#!/bin/bash -eu
# SPDX-License-Identifier: MIT
# Run by OSS-Fuzz, which says how: CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, OUT. The instrumentation comes with its flags, so none
# of ours is asked for.
# Taken is what links the C++ library alone. plan, options, settings, lifecycle and reducer need libdw, libelf, libfmt and libpugixml, report the
# last two: shared objects of this distribution, which the images that run fuzzers have not.
targets=(fault image journal driver allocator table)

cmake -S . -B build/oss-fuzz -G Ninja -DCMAKE_BUILD_TYPE=None -DCUAUDIT_FUZZ=ON -DCUAUDIT_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_CXX_FLAGS="$CXXFLAGS -O1"
cmake --build build/oss-fuzz --target "${targets[@]/#/fuzz_}"
for target in "${targets[@]}"; do
  cp "build/oss-fuzz/bin/fuzz_$target" "$OUT/"
  inputs=("suites/fuzz/corpus/$target"/*)
  [ -d "suites/fuzz/regressions/$target" ] && inputs+=("suites/fuzz/regressions/$target"/*)
  zip -q -j "$OUT/fuzz_${target}_seed_corpus.zip" "${inputs[@]}"
done
