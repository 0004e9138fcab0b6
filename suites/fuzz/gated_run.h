// SPDX-License-Identifier: MIT
// gated_run.h: one execution of a random program: a new world, a gate in front of it, and a journal in memory that is emptied in between;
// and the comparison of the ledger made from that journal with the simulator's own books.
//
// Owns the journal and the gate; the world lives from Execute to Close. Before the program runs, cuInit, cuDevicePrimaryCtxRetain and
// cuCtxSetCurrent are called, so that most programs have a context. Require fails when there is no address space, and, with the journal,
// where ledger and books differ. Each exception says what is not compared and why.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"
#include "faults/journal/record.h"
#include "faults/plan/plan.h"
#include "faults/sim/world.h"
#include "harness/ledger/ledger.h"
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
  void Close();  // so that a second program finds what the first one found, its descriptors too
  std::span<const faults::Record> records() const;
  std::string Text() const;  // the journal, a line a call

  // At the end of the program, when what it had queued has run:
  std::span<const sim::LiveObject> live;
  std::uint64_t stack_entries = 0;
  sim::Fate FateOf(std::uint64_t handle) const { return sim::FateOf(world_, handle); }
  bool settled = false;  // all of it has run; a lost context or a capture under way may stand before that
  bool pinned = false;   // the scope

 private:
  void TakeStock();

  struct Parts;
  std::vector<sim::LiveObject> room_;  // never shrinks: filling it anew took a tenth of the time
  sim::World* world_ = nullptr;
  std::unique_ptr<Parts> parts_;
};

// True for kinds whose handles no other object of the run ever gets (sim::FateOf). Other kinds are named by addresses, which are reused,
// or by devices.
bool HasHandle(driver::Kind kind);

// Requires that the same objects are alive in both, with the same length, and that dead objects died in the same way.
void CompareObjects(const Run& run, const harness::Ledger& ledger);

// Requires that each violation fits the driver's answers and the fate of the handle, and that no violation is missing.
void CompareViolations(const Run& run, const harness::Ledger& ledger);

}  // namespace cuaudit::fuzz
