// SPDX-License-Identifier: MIT
// coverage.h: which ways to fail a sweep reached, of all that the program can reach: places x errors x ways x phases.
//
//   Owns      its rows.
//   Threads   one thread.
//   Units     rows: one for each place, phase, error and way, apart for first faults and for faults while unwinding. However many calls and
//             states fall under it, a row is reached when one fault of it fired where it was to. Pruned faults are no rows of their
//             own: what stands for one is in its row, and where that never fired the row is not reached. How many were not tried for
//             that reason is said beside the rows.
//   Faults    makes no driver calls.
//
// Reachable is what the fault-free run and the unwindings of the trials called, with the errors (--codes) and ways (--how) that the sweep
// was asked for; how many documented errors that leaves out is said beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "faults/plan/fault.h"
#include "harness/sweep/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct WayToFail {
  std::string fault;  // text
  std::uint64_t site = 0;
  faults::Phase phase = faults::Phase::Any;
  bool unwinding = false;  // on the way back from an earlier fault; a program that has recovered from one is where first faults are
};

class CoverageTable {
 public:
  // This trial is to reach it.
  void Plan(const WayToFail& way, std::size_t trial);
  // It is reachable and not tried.
  void LeaveOut(const WayToFail& way, Reason why);

  // `results`: by number of the trial; one that is missing was not run. `site`: a place in words, by SiteKey.
  report::Coverage Result(const std::map<std::size_t, TrialResult>& results,
                          const std::function<report::Acquired(std::uint64_t)>& site) const;

 private:
  struct Row {
    std::string call;
    std::string code;
    std::string how;
    std::uint64_t site = 0;
    faults::Phase phase = faults::Phase::Any;
    bool unwinding = false;
    std::vector<std::size_t> trials;
    Reason why_not = Reason::None;
  };
  Row& RowOf(const WayToFail& way);

  std::vector<Row> rows_;  // in the order of the plan
  std::unordered_map<std::uint64_t, std::size_t> by_key_;
};

}  // namespace cuaudit::harness
