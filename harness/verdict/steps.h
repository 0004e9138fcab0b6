// SPDX-License-Identifier: MIT
// steps.h: what the steps of a lifecycle in C++ answered, and what that says of the errors of their calls. Where a program speaks by
// marks and by its exit status (said.h), a lifecycle speaks by what its steps return.
//
//   Owns      plain values, which may lie in memory shared with a forked child.
//   Threads   values; no shared state.
//   Units     tickets of the journal.
//   Errors    never fails.
//   Faults    makes no driver calls.
//
//   swallowed          every step that can report said success after a call was refused, and the call was not made good
//   wrong_code         the first step that failed returned an error that no refused call had answered
//   output_on_failure  a step failed and wrote one of its declared outputs
//   spurious_failure   a step failed although no fault had fired
#pragma once

#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "harness/verdict/judge.h"
#include "harness/verdict/said.h"

namespace cuaudit::harness {

enum class StepName : std::uint8_t { Init, Work, Teardown, SecondTeardown, Destructor };
inline constexpr std::size_t kSteps = 5;

struct StepTrace {
  bool ran = false;
  bool returned = false;
  bool failed = false;
  bool threw = false;
  bool can_report = false;
  bool has_code = false;
  CUresult code = CUDA_SUCCESS;
  std::uint64_t begin = 0;       // the clock when the step was entered
  char text[96] = {};            // of the exception
  char written_output[48] = {};  // the first output that a failed step wrote; empty: none
};

struct CycleSteps {
  StepTrace step[kSteps];

  const StepTrace& at(StepName name) const { return step[static_cast<std::size_t>(name)]; }
  StepTrace& at(StepName name) { return step[static_cast<std::size_t>(name)]; }
  bool failed() const {
    return std::any_of(std::begin(step), std::end(step), [](const StepTrace& one) { return one.failed; });
  }
  // "init returned CUDA_ERROR_OUT_OF_MEMORY", "work threw: bad alloc"; empty when no step failed.
  std::string FirstFailure() const;
  // "work": the step that was running at that ticket; empty before the first.
  std::string RunningAt(std::uint64_t when) const;
};

// The clean cycle after a faulted one, in the same world.
struct NextCycle {
  Recovery recovery = Recovery::Checked;  // otherwise why it says nothing of the lifecycle
  Ledger ledger;                          // what this cycle took and did wrong
  faults::JournalView journal;
  CycleSteps steps;
};

// `refused`: the calls that faults hit, in order. `lost`: those of them whose work was never done after all. `any_code`: the steps
// translate errors into codes of their own.
[[nodiscard]] Reporting JudgeSteps(const CycleSteps& steps, std::span<const faults::Record* const> refused,
                                   std::span<const faults::Record* const> lost, const faults::JournalView& journal, bool any_code);

// Of a trial in which a fault fired.
[[nodiscard]] Reporting JudgeSteps(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options);

// Of a trial in which none did.
[[nodiscard]] std::vector<TrialFinding> SpuriousFailure(const CycleSteps& steps);

// What a second teardown gave back, the first one having failed: nothing was lost.
[[nodiscard]] std::vector<TrialFinding> GivenBackByRetry(const Evidence& trial);

}  // namespace cuaudit::harness
