// SPDX-License-Identifier: MIT
// coverage.h: what all trials of an audit amount to: how much of the plan they covered, and the outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Counts the ways to fail that a sweep reached, of all that the program can reach; and the places at which an earlier sweep
// made calls fail, so that a sweep with little time begins at the others.
//
// A row is one place, phase, error and way, separately for first faults and for faults while unwinding. README.md ("What is pruned is
// reported") says when it is reached.
//
// Reachable are the calls of the fault-free run and of the unwindings of the trials, with the errors (--codes) and ways (--how) that were
// asked for, and the allocations and threads that --how asks to refuse. The number of documented errors left out by this choice is
// reported beside the rows.
//
// A place of an earlier release has moved to other lines and has another stack. So places of two releases are compared by the call and by
// the function of the program that makes it, and within a function by their number.

// Where the program makes a call, told by functions and lines, so that it is one place however it was compiled.
struct ProgramPlace {
  std::string function;     // the innermost of the program, without parameters; empty: unknown
  std::uint64_t place = 0;  // a hash
};
ProgramPlace PlaceInProgram(const std::vector<report::Frame>& stack);

// In the order in which they are tried.
enum class Novelty : std::uint8_t {
  New,      // the earlier sweep made this call fail nowhere in this function
  Changed,  // it did so at another number of places
  Known,
};

class TriedBefore {
 public:
  using Function = std::pair<std::string, std::string>;  // entry point, and function of the program

  // `places` is the number of places in the function; 0: unknown.
  void Add(const std::string& call, const std::string& function, std::uint64_t places);

  // What each place is; `places` are those of the new sweep.
  std::vector<Novelty> Compare(const std::vector<report::Acquired>& places) const;

 private:
  std::map<Function, std::uint64_t> places_;
};

class CoverageTable {
 public:
  // The trial `trial` is planned to reach this row.
  void Plan(const WayToFail& way, std::size_t trial);
  // The row can be reached but is not tried.
  void LeaveOut(const WayToFail& way, Reason why);

  // `results` is indexed by trial number; a missing trial was not run, because of `untried`. `site` describes the place with a SiteKey.
  report::Coverage Result(const std::map<std::size_t, TrialResult>& results, const std::function<report::Acquired(std::uint64_t)>& site,
                          Reason untried = Reason::Interrupted) const;

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

// The outcome of an audit, from all its trials.

// Sets run->outcome and run->message from `trials`, run->findings and run->totals.pruned. `possible` is the number of faults before --call,
// --limit and pruning. `dir` is the directory of the journals.
void SetOutcome(std::span<const TrialResult* const> trials, std::size_t possible, const std::string& dir, report::Run* run);

// Called after SetOutcome for a sweep. Without host records, giving up cannot be told from unwinding everything except driver objects, so a
// sweep that excused leaks as abandoned becomes not exercised instead of clean, and says so beside findings. Leaks that the marked phase
// init excused need no host records.
void RefuseUnseenAbandonment(const faults::JournalHeader& header, std::span<const TrialResult* const> trials, report::Run* run);

// Makes a clean run not exercised when its coverage is below `tenths` of a percent.
void RequireCoverage(std::uint64_t tenths, report::Run* run);

}  // namespace cuaudit::harness
