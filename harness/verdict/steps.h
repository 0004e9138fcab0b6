// SPDX-License-Identifier: MIT
// steps.h: judges what the steps of a lifecycle in C++ returned. A lifecycle reports by its return values; for programs see parts.h.
//
//   Owns      plain values, which may lie in memory shared with a forked child.
//   Units     tickets of the journal.
//
//   swallowed          a call was refused and not made good, and no step reported failure
//   wrong_code         the first step that failed returned an error that no refused call had returned
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

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

class Rehearsed;

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
  std::uint64_t begin = 0;       // ticket when the step was entered
  char text[96] = {};            // text of the exception
  char written_output[48] = {};  // the first output that a failed step wrote; empty: none
};

struct CycleSteps {
  StepTrace step[kSteps];
  std::uint64_t benign_faults = 0;  // bit i: fault i of the plan, counted from 0, is declared benign

  const StepTrace& at(StepName name) const { return step[static_cast<std::size_t>(name)]; }
  StepTrace& at(StepName name) { return step[static_cast<std::size_t>(name)]; }
  bool failed() const {
    return std::any_of(std::begin(step), std::end(step), [](const StepTrace& one) { return one.failed; });
  }
  // "init returned CUDA_ERROR_OUT_OF_MEMORY", "work threw: bad alloc"; empty when no step failed.
  Details FirstFailure() const;
  // Name of the step that was running at that ticket, such as "work"; empty before the first step.
  std::string RunningAt(std::uint64_t when) const;
};

// The clean cycle after a faulted one, in the same world.
struct NextCycle {
  Recovery recovery = Recovery::Checked;  // otherwise the reason why the cycle proves nothing
  Ledger ledger;                          // what this cycle acquired and did wrong
  faults::JournalView journal;
  CycleSteps steps;
};

// `refused` holds the calls that faults hit, in order; `failed` all calls that failed; `lost` those whose work was never done. With
// `any_code` the steps translate errors into codes of their own.
[[nodiscard]] Reporting JudgeSteps(const CycleSteps& steps, std::span<const faults::Record* const> refused,
                                   std::span<const faults::Record* const> failed, std::span<const faults::Record* const> lost,
                                   const faults::JournalView& journal, bool any_code);

// Judges a trial in which a fault fired.
[[nodiscard]] Reporting JudgeSteps(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options);

// Judges a trial in which no fault fired.
[[nodiscard]] std::vector<TrialFinding> SpuriousFailure(const CycleSteps& steps);

// Objects that a second tear-down released after the first one had failed. Nothing was lost.
[[nodiscard]] std::vector<TrialFinding> GivenBackByRetry(const Evidence& trial);

}  // namespace cuaudit::harness
