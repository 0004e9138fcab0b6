// SPDX-License-Identifier: MIT
// gated_run.h: one execution of a random program: a new world, a gate in front of it, a journal in memory that is emptied in between.
//
//   Owns      journal and gate; the world lives while the program runs.
//   Threads   one thread.
//   Errors    Require where there is no address space.
//   Faults    Init, DevicePrimaryCtxRetain and CtxSetCurrent, so that most programs have a context; then the program's own.
//   Source    ours.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "faults/journal/record.h"
#include "faults/plan/plan.h"
#include "faults/sim/world.h"
#include "include/cuaudit/fuzz_input.h"

namespace cuaudit::fuzz {

struct RunOptions {
  sim::Schedule schedule = sim::Schedule::Lazy;
  int devices = 1;
  bool pinned = false;
  std::uint64_t seed = 1;
  faults::Plan plan;
};

class Run {
 public:
  Run();
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void Execute(const RunOptions& options, FuzzInput program);
  std::span<const faults::Record> records() const;
  std::string Text() const;  // the journal, a line a call

  sim::LiveCounts live = {};  // at the end of the program, when what it had queued has run
  bool settled = false;       // all of it has; a lost context or a capture under way may stand before that

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cuaudit::fuzz
