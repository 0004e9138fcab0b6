// SPDX-License-Identifier: MIT
// fuzz.h: a fuzzer for the error paths of a lifecycle: the first bytes of an input choose which driver calls fail and how, also the ones
// made while unwinding; what is left of it may steer the lifecycle itself.
//
//     #include <cuaudit/fuzz.h>
//     struct Pool { CUresult Init(cuaudit::DriverRef); CUresult Teardown(cuaudit::DriverRef); ... };
//     CUAUDIT_FUZZ(cuaudit::Lifecycle::Of<Pool>("pool", 3).WithCurrentContext())
//
// or, with a lifecycle that differs from input to input:
//
//     extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
//       cuaudit::FuzzInput input(data, size);
//       const cuaudit::FaultChoice faults(&input);
//       cuaudit::Fuzzer(cuaudit::Lifecycle::Of<Pool>("pool", 1 + input.Below(8)).WithCurrentContext()).Require(faults);
//       return 0;
//     }
//
//   Owns      a Fuzzer: a simulated world for its trials, and what it has learnt about its lifecycle.
//   Threads   one thread.
//   Errors    Require ends the process, with the finding and the line that shows it again on stderr, as fuzzers expect.
//   Faults    makes no driver calls but the lifecycle's.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cuaudit/fuzz_input.h"
#include "cuaudit/lifecycle.h"

namespace cuaudit {

// Up to kMost faults, as an input chooses them. A fixed number of bytes, so that what follows keeps its place.
struct FaultChoice {
  static constexpr std::size_t kMost = 3;
  struct One {
    std::uint32_t call = 0;  // among those that can fail after the fault before
    std::uint8_t code = 0;   // among those that the call is documented to answer
    std::uint8_t how = 0;    // refuse, refuse+garbage (FuzzOptions), after, persist, burst, sticky
  };
  explicit FaultChoice(FuzzInput* input) : count(input->Below(kMost + 1)) {
    for (One& one : fault) {
      const std::uint32_t high = input->Byte();
      one.call = high << 8U | input->Byte();
      one.code = input->Byte();
      one.how = input->Byte();
    }
  }
  std::size_t count;
  One fault[kMost];
};

struct FuzzOptions {
  // Refused calls may overwrite their outputs. The driver promises nothing about them, yet much code that works relies on them.
  bool garbage = false;
};

// One trial.
struct FuzzTrial {
  bool finding = false;
  bool fired = false;                    // every chosen fault did
  std::string verdict;                   // "pass", "absorbed", "leak", ...; of no fault: "fault_free"
  std::vector<std::string> faults = {};  // as texts
  std::string text = {};                 // of a finding: everything that Audit::Text has to say
};

class Fuzzer {
 public:
  CUAUDIT_PUBLIC explicit Fuzzer(Lifecycle lifecycle, FuzzOptions options = {});
  CUAUDIT_PUBLIC ~Fuzzer();
  Fuzzer(const Fuzzer&) = delete;
  Fuzzer& operator=(const Fuzzer&) = delete;

  [[nodiscard]] CUAUDIT_PUBLIC FuzzTrial Try(const FaultChoice& choice);

  // Ends the process when the trial has a finding.
  void Require(const FaultChoice& choice) {
    const FuzzTrial trial = Try(choice);
    if (!trial.finding) return;
    std::fputs(trial.text.c_str(), stderr);
    std::abort();
  }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cuaudit

// A whole fuzz target for one lifecycle.
#define CUAUDIT_FUZZ(...)                                                             \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    static auto* const fuzzer = new ::cuaudit::Fuzzer(__VA_ARGS__);                   \
    ::cuaudit::FuzzInput input(data, size);                                           \
    fuzzer->Require(::cuaudit::FaultChoice(&input));                                  \
    return 0;                                                                         \
  }
