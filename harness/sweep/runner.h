// SPDX-License-Identifier: MIT
// runner.h: who carries out the trials of a sweep: given lists of faults, what was seen under each, in whatever order they finish.
//
//   Owns      whatever a trial runs in: processes, forks, a simulated world.
//   Threads   one caller.
//   Errors    Status: a trial cannot be run at all, or the sweep was interrupted. How a trial ended is no error.
//   Faults    the implementation's.
//
// The engine gives a whole round at once, in the order of the plan, so that a runner may carry out what several lists have in common once:
// a round is a tree whose branches are faults. While a round is under way single trials may be given again, when their fault hit another
// place than planned. Between two rounds the runner is idle.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/observation.h"
#include "harness/sweep/status.h"
#include "harness/sweep/trial.h"

namespace cuaudit::harness {

struct TrialOrder {
  std::size_t index = 0;            // in the plan; comes back with what was seen
  std::vector<std::string> faults;  // in the order in which they fire; never empty
  int attempt = 1;
  bool goes_on = false;  // the next round tries what the subject calls while it unwinds from these
};

// What a runner can tell by itself: the subject unwound and nothing is wrong, so that no place needs a name.
struct Settled {
  Verdict verdict = Verdict::Pass;
  Said said = Said::Nothing;
  std::vector<Reason> skipped = {};  // checks that could not be made
};

struct TrialSeen {
  std::size_t index = 0;
  Observation seen;  // of a settled trial only where the order says that the sweep goes on from it
  Isolation isolation = Isolation::Unknown;
  Fallback fallback;                    // why it was spawned although it was to be run otherwise; empty: it was not
  std::optional<Settled> settled = {};  // none: the trial is to be judged
};

class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  virtual ~Runner() = default;

  virtual Status Give(std::vector<TrialOrder> orders) = 0;
  // Blocks until one trial has finished. Never called while idle.
  virtual Result<TrialSeen> Next() = 0;
  // Called once the trial that Next answered last is judged. Adds what only repeats of that trial can tell.
  virtual Status Repeat(TrialResult* /*trial*/) { return {}; }
  virtual bool idle() const noexcept = 0;        // every order given has come back
  virtual int interrupted() const noexcept = 0;  // the signal that ended the sweep, 0: none
};

}  // namespace cuaudit::harness
