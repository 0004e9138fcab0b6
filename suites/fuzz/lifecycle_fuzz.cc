// SPDX-License-Identifier: MIT
// Lifecycles that unwind cleanly, with faults chosen by the input's first bytes: nothing may ever be found. The byte behind the faults says
// which lifecycle.
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "cuaudit/fuzz.h"
#include "suites/fuzz/subjects.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cuaudit::fuzz;
  using cuaudit::Fuzzer;
  using cuaudit::Lifecycle;
  static Fuzzer* const fuzzers[] = {
      new Fuzzer(Lifecycle::Of<Picture>("picture", 3).WithCurrentContext(), {.garbage = true}),
      new Fuzzer(Lifecycle::Of<Program>("program").WithCurrentContext(), {.garbage = true}),
  };
  cuaudit::FuzzInput input(data, size);
  const cuaudit::FaultChoice faults(&input);
  fuzzers[input.Below(std::size(fuzzers))]->Require(faults);
  return 0;
}
