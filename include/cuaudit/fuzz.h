// SPDX-License-Identifier: MIT
// fuzz.h: a fuzz target for the error paths of a lifecycle. The first bytes of an input choose which driver calls fail and how,
// including calls made while unwinding. The rest of the input may steer the lifecycle.
//
//     #include <cuaudit/fuzz.h>
//     struct Pool { CUresult Init(cuaudit::DriverRef); CUresult Teardown(cuaudit::DriverRef); ... };
//     CUAUDIT_FUZZ(cuaudit::Lifecycle::Of<Pool>("pool", 3).WithCurrentContext())
//
// With a lifecycle that depends on the input:
//
//     extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
//       cuaudit::FuzzInput input(data, size);
//       const cuaudit::FaultChoice faults(&input);
//       cuaudit::Fuzzer(cuaudit::Lifecycle::Of<Pool>("pool", 1 + input.Below(8)).WithCurrentContext()).Require(faults);
//       return 0;
//     }
//
// A Fuzzer owns a simulated world for its trials and what it has learnt about its lifecycle. Use a Fuzzer from one thread.
// Require prints the finding and the command that reproduces it on stderr and aborts the process, as fuzzers expect.
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

// Up to kMost faults, chosen by an input. They always take the same number of bytes, so that mutating one fault does not shift the bytes
// that follow.
struct FaultChoice {
  static constexpr std::size_t kMost = 3;
  struct One {
    std::uint32_t call = 0;  // index among the fallible calls after the previous fault
    std::uint8_t code = 0;   // index among the errors documented for the call
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
  // Refused calls may overwrite their outputs. The driver promises nothing about the outputs of a failed call, but much working code
  // relies on them being unchanged.
  bool garbage = false;
};

// Result of one trial.
struct FuzzTrial {
  bool finding = false;
  bool fired = false;                    // true when every chosen fault fired
  std::string verdict;                   // "pass", "absorbed", "leak", ...; "fault_free" when no fault was chosen
  std::vector<std::string> faults = {};  // their text forms
  std::string text = {};                 // Audit::Text of the trial when it has a finding
};

class Fuzzer {
 public:
  CUAUDIT_PUBLIC explicit Fuzzer(Lifecycle lifecycle, FuzzOptions options = {});
  CUAUDIT_PUBLIC ~Fuzzer();
  Fuzzer(const Fuzzer&) = delete;
  Fuzzer& operator=(const Fuzzer&) = delete;

  [[nodiscard]] CUAUDIT_PUBLIC FuzzTrial Try(const FaultChoice& choice);

  // Runs one trial and aborts the process when it has a finding.
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

// Defines a complete fuzz target for one lifecycle.
#define CUAUDIT_FUZZ(...)                                                             \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    static auto* const fuzzer = new ::cuaudit::Fuzzer(__VA_ARGS__);                   \
    ::cuaudit::FuzzInput input(data, size);                                           \
    fuzzer->Require(::cuaudit::FaultChoice(&input));                                  \
    return 0;                                                                         \
  }
