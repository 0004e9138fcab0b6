#!/bin/bash
# SPDX-License-Identifier: MIT
# Run by OSS-Fuzz, which says how: CC, CXX, CFLAGS, CXXFLAGS, LIB_FUZZING_ENGINE, OUT. The instrumentation comes with its flags, so none
# of ours is asked for. Its C++ library is not the distribution's: fmt is compiled along, and reducer, which is GoogleTest's, is left out.
# The image that runs the programs has not the shared objects of this one: those go along, in lib/.
set -euo pipefail
mapfile -t targets < <(sed -n 's/^cuaudit_add_fuzz_target(\([a-z_]*\).*/\1/p' suites/fuzz/CMakeLists.txt | grep -vx reducer)

cmake -S . -B build/oss-fuzz -G Ninja -DCMAKE_BUILD_TYPE=None -DCUAUDIT_FUZZ=ON -DCUAUDIT_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
  -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_FLAGS="$CFLAGS" -DCMAKE_CXX_FLAGS="$CXXFLAGS -O1 -DFMT_HEADER_ONLY" \
  -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build build/oss-fuzz --target "${targets[@]/#/fuzz_}"
mkdir -p "$OUT/lib"
for target in "${targets[@]}"; do
  program=build/oss-fuzz/bin/fuzz_$target
  cp "$program" "$OUT/"
  ldd "$program" | awk '/not found/ { exit 1 } $3 ~ /^\// && $1 !~ /^(libc|libm|libdl|librt|libpthread)\.so/ { print $3 }' |
    xargs -r cp -L -t "$OUT/lib"
  inputs=build/oss-fuzz/inputs/$target
  scripts/fuzz_inputs unpack "$target" "$inputs"
  find "$inputs" -type f -print | sort | zip -q -j "$OUT/fuzz_${target}_seed_corpus.zip" -@
  case $target in # programs of bytes: see scripts/fuzz
    driver | allocator | lifecycle) printf '[libfuzzer]\nmax_len = 320\nentropic = 0\n' >"$OUT/fuzz_$target.options" ;;
  esac
done
for target in "${targets[@]}"; do readelf -d "$OUT/fuzz_$target" | grep -F 'rpath: [$ORIGIN/lib]' >/dev/null; done
