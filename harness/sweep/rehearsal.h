// SPDX-License-Identifier: MIT
// rehearsal.h: the fault-free runs that every trial is compared with.
//
//   Owns      the journals and ledgers of the first run and, of a case whose calls have no order that holds, of the others.
//   Threads   one thread.
//   Errors    Status when a run is unfit (observation.h) or was interrupted. Two runs that differ are no error: the case is drifting.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/sweep/observation.h"
#include "harness/sweep/trial.h"
#include "harness/sweep/work_dir.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

struct Rehearsal {
  Observation run;
  std::vector<Observation> others;  // of a case that drifts, has several threads, or leaves not the same each time
  bool threaded = false;            // several threads or processes make calls
  bool drifting = false;            // two runs differ, if only in the order in which threads take turns
  bool same_work = true;            // each thread did the same in all runs
  std::string drift;                // "call 12: cuMemAlloc, then cuStreamCreate"
  // Of a lifecycle in C++: what its steps ask of the host is counted, not recorded.
  struct HostTurns {
    std::uint32_t allocations = 0;
    std::uint32_t threads = 0;
  };
  std::optional<HostTurns> host_turns;
  std::vector<TrialFindingText> host_findings;  // rules of the host that it breaks without any fault
  // Numbers of the arguments that name files which the program wrote to (also as --option=FILE), in this directory's sweep so far.
  std::set<std::size_t> outputs;
};

// What trials are compared with: the first run and then the others. Borrows from the rehearsal.
std::vector<Rehearsed> Tables(const Rehearsal& rehearsal);

// Adds the next fault-free run; the first one comes first.
void AddRun(Observation run, Rehearsal* rehearsal);

// Runs the program once, or twice to see whether it does the same each time. Where the work of two runs differs it is run twice more: a
// place that only some runs come to is known from any of them.
Result<Rehearsal> Rehearse(const Subject& subject, const WorkDir& dir, int runs, int* interrupted);

// Drops the other runs where the first one says all: it has an order that holds, and every run leaves the same.
void ForgetEqualRuns(Rehearsal* rehearsal);

// The subject as its trials are run: without host probes that nobody asked for where they saw too little of the fault-free run, since
// what they tell of a trial would be compared with nothing.
Subject SubjectOfTrials(const Subject& subject, const Rehearsal& rehearsal);

// What an earlier command left of its rehearsal in this directory; nothing where that was a case whose calls have an order that holds:
// it can be rehearsed again.
std::optional<Rehearsal> KeptRehearsal(const Subject& subject, const WorkDir& dir);

// The first driver call, counted from 1 in order of the clock, at which two runs part: "call 12: cuMemAlloc, then cuStreamCreate".
std::string FirstDifference(const Evidence& first, const Evidence& second);

}  // namespace cuaudit::harness
