// SPDX-License-Identifier: MIT
// runner.h: the interface of runners. A runner gets lists of faults and answers what was seen under each, in the order in which they
// finish.
//
//   Owns      what a trial runs in: processes, forks, a simulated world.
//   Threads   one caller.
//   Errors    Status: a trial cannot be run at all, or the sweep was interrupted. No ending of a trial is an error.
//
// The engine gives a whole round at once, in the order of the plan, so that a runner can share the common beginnings of several lists.
// While a round is under way, single trials may be given again when their fault hit another place than planned. Between rounds the runner
// is idle.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/process/status.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {

struct TrialOrder {
  std::size_t index = 0;            // number in the plan; returned with what was seen
  std::vector<std::string> faults;  // in the order in which they fire; never empty
  int attempt = 1;
  bool goes_on = false;  // the next round tries the calls that the subject makes while it unwinds
};

// A judgement by the runner itself: the subject unwound and nothing is wrong, so no place needs a name; or nothing can be judged.
struct Settled {
  Verdict verdict = Verdict::Pass;
  Said said = Said::Nothing;
  Missed missed = Missed::Nothing;
  std::vector<Reason> skipped = {};  // checks that were not possible
};

struct TrialSeen {
  std::size_t index = 0;
  Observation seen;  // of a settled trial only when the order goes on
  Isolation isolation = Isolation::Unknown;
  Fallback fallback;                    // why the chosen isolation was not used; empty: it was
  std::optional<Settled> settled = {};  // empty: the trial must be judged
};

class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  virtual ~Runner() = default;

  virtual Status Give(std::vector<TrialOrder> orders) = 0;
  // Blocks until one trial has finished. Must not be called while idle.
  virtual Result<TrialSeen> Next() = 0;
  // Called after the last trial from Next was judged. Adds what only repetitions of the trial can show.
  virtual Status Repeat(TrialResult* /*trial*/) { return {}; }
  // True: a trial that missed its fault would miss it again, so it is not tried again.
  virtual bool repeats_exactly() const noexcept { return false; }
  virtual bool idle() const noexcept = 0;        // true when every order has come back
  virtual int interrupted() const noexcept = 0;  // the signal that ended the sweep; 0: none
};

}  // namespace cuaudit::harness
