// SPDX-License-Identifier: MIT
// The first bytes of an input choose which driver calls fail and how; the next one how many frames there are.
#include <cuaudit/fuzz.h>

#include "frame_pool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  const cuaudit::FaultChoice faults(&input);
  const std::size_t frames = input.Below(9);
  cuaudit::Fuzzer(cuaudit::Lifecycle::Of<FramePool>("frame_pool", frames).WithCurrentContext()).Require(faults);
  return 0;
}
