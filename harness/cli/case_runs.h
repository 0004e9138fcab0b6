// SPDX-License-Identifier: MIT
// case_runs.h: carries out one case of a project, its sweep and then its cycles, and writes their reports.
//
//   Errors    none of its own: a case that cannot be carried out says why in its index row and counts as not exercised; a file that cannot be
//             written is Exit::Failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/carry_out.h"
#include "harness/cli/progress.h"
#include "harness/options/options.h"
#include "harness/process/status.h"
#include "harness/project/case_settings.h"
#include "harness/project/finished_case.h"
#include "reports/audit_json.h"

namespace cuaudit::harness {

// The cases of --config, or of --ctest the tests of a build (asks `ctest` of PATH), with the settings of CUAUDIT_AUDIT and of the command
// line over those of the files. In test_cases.cc.
Result<std::vector<ProjectCase>> ReadCases(const Options& options);

// Where the files of a case go.
struct CasePlaces {
  std::string out;   // the result directory
  std::string work;  // work directory of this case; kept until the case has been carried out to its end
};

// The sweep or the cycles of a case.
struct PartSeen {
  std::string report;   // name of the file; empty: it could not be written
  std::string trials;   // the same
  std::string line;     // "1 defect, 3 findings"
  std::string not_run;  // why it was not carried out, or not far enough to prove anything; empty: it was
  std::uint64_t defects = 0;
  Exit exit = Exit::Clean;
  bool complete = false;
  bool cut = false;      // by the budget, so that another turn can go on
  std::string left_out;  // what the budget has left out, beside an earlier release: "2 new or changed places untried"
  bool refused = false;  // it could not be started
  std::vector<std::string> modules;
  std::vector<std::string> unused_suppressions;  // places of the entries that none of its defects fits
  Progress::Clock::duration run_time = {};       // of a fault-free run; zero: unknown
};

struct CaseSeen {
  FinishedCase result;  // without digest and content of the modules
  std::string not_run;  // as report::IndexedCase has them
  std::string left_out;
  int signal = 0;         // the signal that ended it; 0: none
  bool complete = false;  // all was carried out that the case asks for, and the reports are written
  bool cut = false;       // something was left out for the budget
  std::vector<std::string> modules;
  std::string suppressions;  // the file of --suppressions; empty: none
  // What was carried out in this turn or before it.
  std::optional<PartSeen> sweep;
  std::optional<PartSeen> cycles;
  bool no_time = false;  // the budget has no time for the cycles
};

// Its row in audit.json.
report::IndexedCase RowOf(const CaseSeen& seen, const std::string& name, const std::vector<std::string>& tags);

// What a case does when it is its turn.
struct Turn {
  bool sweep = true;
  bool cycles = true;
  Spend spend;                                              // of the sweep
  std::optional<Progress::Clock::time_point> cycles_until;  // cycles that would last longer do not begin
  const TriedBefore* before = nullptr;                      // what the base has tried of the case; null: there is no base
};

// The number that stands for {n} in the command of a sweep: a cycle to make fail in, and one more to see whether the program recovered.
inline constexpr std::uint64_t kCyclesOfSweep = 2;

// `tool` is the name of the tool in reproduce lines. `before` is what the case has done in earlier turns: its parts stay, but a sweep that
// was cut goes on.
CaseSeen CarryOutCase(const ProjectCase& one, const CasePlaces& places, const std::string& tool, const Turn& turn, const CaseSeen& before,
                      Progress* progress);

// Looks again which suppressions in the reports of a finished case have expired, and says what it amounts to today. A report in which one
// has is written anew. False: a report cannot be read or written, so the case has to be carried out again.
bool ExpireKept(const std::string& name, const std::string& out, FinishedCase* finished);

// Of the defects, those that no suppression accepts.
std::uint64_t CountOf(const report::Run& run);

// "1 defect, 3 findings"; "clean for 10 of 12 planned faults"; "not exercised: no fault fired".
std::string OutcomeLine(const report::Run& run);

// Takes away what `other` does not have.
void KeepCommon(const std::vector<std::string>& other, std::vector<std::string>* places);

// The worse of two exit codes of an audit: a failure of cuaudit, then findings, then what proves nothing.
Exit Worse(Exit a, Exit b);

// What all cases of an audit come to.
struct AuditSum {
  Exit exit = Exit::Clean;  // the worst of the cases
  std::string line;         // "3 cases: 2 defects in 1, 1 clean, 1 cut short by the budget"
};

// Of the cases that are `selected`.
AuditSum SumOf(const std::vector<bool>& selected, const std::vector<CaseSeen>& seen);

// Entries of --suppressions that fit no defect of any case. Those of a file are known when all cases that take the file were carried out to
// their end.
std::vector<std::string> UnusedSuppressions(const std::vector<CaseSeen>& seen);

// Writes audit.json of the result directory `out`, of this version and of now.
Status WriteIndex(report::AuditIndex index, const std::string& out);

}  // namespace cuaudit::harness
