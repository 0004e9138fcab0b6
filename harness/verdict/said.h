// SPDX-License-Identifier: MIT
// said.h: what the program told its caller about its errors, held against what its calls answered.
//
//   Owns      its findings; borrows ledgers and journals while judging.
//   Threads   values; no shared state.
//   Errors    never fails.
//   Faults    makes no driver calls.
//
// A program speaks by cuaudit_report (cuaudit/mark.h); one that does not speaks by its exit status only, which is no promise about each
// single call: then success after a fault is a finding only when asked for (exit_is_said).
//   swallowed          success after a call was refused, unless the cycle made as many calls of that entry point succeed as the
//   rehearsal's:
//                      then it tried again and got what it wanted. A refused release is not counted: teardown often has nobody to tell
//   spurious_failure   failure in a cycle without faults in which no call failed
//   wrong_code         an error that no call of the cycle answered
//   output_on_failure  failure, with the output said to be written
#pragma once

#include <vector>

#include "harness/verdict/judge.h"

namespace cuaudit::harness {

struct Reporting {
  Said said = Said::Nothing;
  std::vector<TrialFinding> findings;
  std::vector<Reason> skipped;  // checks that could not be made
};

// Of a trial in which a fault fired.
[[nodiscard]] Reporting JudgeReporting(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options);

// Of a run without faults.
[[nodiscard]] std::vector<TrialFinding> SpuriousFailures(const Evidence& run);

// The refused calls of that cycle, releases among them, whose work was never done after all: fewer calls of that entry point succeeded than
// in the rehearsal's cycle.
[[nodiscard]] std::vector<const faults::Record*> NeverDone(const Rehearsed& rehearsal, const Evidence& trial, std::uint32_t cycle);

// "OUT_OF_MEMORY", or the number where it is no CUresult.
std::string SaidCode(std::uint64_t argument);

}  // namespace cuaudit::harness
