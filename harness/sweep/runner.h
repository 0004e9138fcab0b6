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
#include <string>
#include <vector>

#include "harness/sweep/observation.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

struct TrialOrder {
  std::size_t index = 0;            // in the plan; comes back with what was seen
  std::vector<std::string> faults;  // in the order in which they fire; never empty
  int attempt = 1;
};

struct TrialSeen {
  std::size_t index = 0;
  Observation seen;
  Isolation isolation = Isolation::Unknown;
  Fallback fallback;  // why it was spawned although it was to be run otherwise; empty: it was not
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
  virtual bool idle() const noexcept = 0;        // every order given has come back
  virtual int interrupted() const noexcept = 0;  // the signal that ended the sweep, 0: none
};

}  // namespace cuaudit::harness
