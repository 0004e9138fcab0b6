// SPDX-License-Identifier: MIT
// wanted_defect.h: the defect of a result that is to be reduced, and what of it driver calls alone can show.
//
//   Owns      plain values and a share of the report.
//   Errors    Status: no such defect, or one that no driver call shows; Exit::Usage.
#pragma once

#include <string>
#include <vector>

#include "harness/kit/defect_shown.h"
#include "harness/process/status.h"
#include "reports/audit.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct WantedDefect {
  report::Run run;  // the report that has it
  report::Defect defect;
  report::Finding root;  // the finding that shows it with the fewest faults
  std::vector<std::string> faults;
  std::vector<Wrong> wanted;          // Together, with counts of one trial; what a run without faults leaves is LeftAtExit
  std::vector<std::string> left_out;  // "host_heap 2: ..."
};

Result<WantedDefect> FindDefect(const report::Audit& audit, const std::string& fingerprint, const std::string& source);

// Takes the counts of this one trial: a finding of a sweep has the most of all its trials. An error when `replayed` lacks one.
Status TakeCounts(const report::Run& replayed, WantedDefect* defect);

// What a report shows under these faults, in the same form.
std::vector<Wrong> WrongIn(const report::Run& run, const std::vector<std::string>& faults);

// What grows is LeftAtExit in `wanted` and has its own rule in a report.
Rule RuleInReport(const WantedDefect& defect, const Wrong& wrong);

// True when a rule of the defect compares places: what code gives back must be what the same code took.
bool IsByPlace(const WantedDefect& defect);

// "leak 1 stream, deficit 1 context_stack_entry"
std::string InWords(const WantedDefect& defect, const std::vector<Wrong>& wrong);

}  // namespace cuaudit::harness
