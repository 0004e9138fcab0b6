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
#include "harness/process/status.h"
#include "harness/project/case_settings.h"
#include "harness/project/finished_case.h"
#include "reports/audit_json.h"

namespace cuaudit::harness {

// Where the files of a case go.
struct CasePlaces {
  std::string out;   // the result directory
  std::string work;  // work directory of this case; kept until the case has been carried out to its end
};

// The sweep or the cycles of a case.
struct PartSeen {
  std::string report;  // name of the file; empty: it could not be written
  std::string line;
  std::uint64_t defects = 0;
  Exit exit = Exit::Clean;
  bool complete = false;
};

struct CaseSeen {
  report::IndexedCase row;
  std::string line;  // for stdout: "pool: sweep 1 defect, 3 findings; cycles clean"
  std::uint64_t defects = 0;
  Exit exit = Exit::Clean;
  int signal = 0;         // the signal that ended it; 0: none
  bool complete = false;  // all was carried out that the case asks for, and the reports are written
  std::vector<std::string> modules;
  std::optional<PartSeen> cycles;  // they stay when the sweep goes on later
};

// The number that stands for {n} in the command of a sweep: a cycle to make fail in, and one more to see whether the program recovered.
inline constexpr std::uint64_t kCyclesOfSweep = 2;

// `tool` is the name of the tool in reproduce lines. `cycles` are those that were carried out before. Others begin only before the end of
// the budget.
CaseSeen CarryOutCase(const ProjectCase& one, const CasePlaces& places, const std::string& tool, const Spend& spend,
                      const std::optional<PartSeen>& cycles, Progress* progress);

// The worse of two exit codes of an audit: a failure of cuaudit, then findings, then what proves nothing.
Exit Worse(Exit a, Exit b);

}  // namespace cuaudit::harness
