// SPDX-License-Identifier: MIT
// said.h: compares what the program told its caller about errors with the results of its calls.
//
//   Owns      its findings. Borrows ledgers and journals while judging.
//
// A program reports by cuaudit_report (cuaudit/mark.h). Without reports there is only the exit status, which promises nothing about single
// calls: success after a fault is then a finding only on request (exit_is_said).
//
//   swallowed          The program reported success after a call was refused. No finding when as many calls of that entry point succeeded
//                      as in the rehearsal, because then a retry worked. Refused releases do not count: tear-down code often cannot report.
//   spurious_failure   The program reported failure in a cycle without faults in which no call failed.
//   wrong_code         The program reported an error that no call of the cycle returned.
//   output_on_failure  The program reported failure and declared an output as written.
#pragma once

#include <vector>

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

class Rehearsed;

struct Reporting {
  Said said = Said::Nothing;
  std::vector<TrialFinding> findings;
  std::vector<Reason> skipped;  // checks that were not possible
};

// Judges the reports of a trial in which a fault fired.
[[nodiscard]] Reporting JudgeReporting(const Rehearsed& rehearsal, const Evidence& trial, const JudgeOptions& options);

// Judges the reports of a run without faults.
[[nodiscard]] std::vector<TrialFinding> SpuriousFailures(const Evidence& run);

// Refused calls of the cycle, releases included, whose work was never done: fewer calls of the entry point succeeded than in the
// rehearsal's cycle.
[[nodiscard]] std::vector<const faults::Record*> NeverDone(const Rehearsed& rehearsal, const Evidence& trial, std::uint32_t cycle);

// "OUT_OF_MEMORY", or the number when it is no CUresult.
std::string SaidCode(std::uint64_t argument);

}  // namespace cuaudit::harness
