// SPDX-License-Identifier: MIT
// rehearsal.h: the fault-free runs that every trial is compared with.
//
//   Owns      journal and ledger of the first run, and of the other runs when the calls have no fixed order.
//   Threads   one thread.
//   Errors    Status when a run is unfit (observation.h) or was interrupted. Two different runs are no error: the case is drifting.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/trial.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

struct Rehearsal {
  Observation run;
  std::vector<Observation> others;  // of a case that drifts, has several threads, or leaves something else each time
  bool threaded = false;            // several threads or processes make calls
  bool drifting = false;            // two runs differ, if only in the order in which threads take turns
  bool same_work = true;            // each thread did the same in all runs
  std::string drift;                // "call 12: cuMemAlloc, then cuStreamCreate"
  std::size_t not_compared = 0;     // number of calls from the first one that differs between two runs; of the longer rest
  // Only for a lifecycle in C++, whose requests to the host are counted and not recorded.
  struct HostTurns {
    std::uint32_t allocations = 0;
    std::uint32_t threads = 0;
  };
  std::optional<HostTurns> host_turns;
  std::string grown;  // "2 module, 1 stream": in the first run, what the last marked cycle leaves beyond the first one
  std::vector<TrialFindingText> host_findings;  // host rules broken without any fault
  // Numbers of the arguments that name files which the program wrote (also as --option=FILE), in all sweeps of this directory.
  std::set<std::size_t> outputs;
};

// The tables that trials are compared with: of the first run and then of the others. They borrow from the rehearsal.
std::vector<Rehearsed> Tables(const Rehearsal& rehearsal);

// Adds a fault-free run. The first run must be added first.
void AddRun(Observation run, Rehearsal* rehearsal);

// Number of driver objects of each kind that are held at ticket `last` in excess of those at ticket `first`: "2 module, 1 stream".
std::string MoreHeld(const Ledger& ledger, std::uint64_t first, std::uint64_t last);

// Runs the program once, or twice to see whether it does the same each time. When the work of two runs differs, the program runs twice
// more, because a place that only some runs reach must be seen in one of them.
Result<Rehearsal> Rehearse(const Subject& subject, const WorkDir& dir, int runs, int* interrupted);

// Drops the other runs when the first one is representative: its calls have a fixed order, and every run leaves the same.
void ForgetEqualRuns(Rehearsal* rehearsal);

// The subject of the trials. Host probes that nobody asked for are switched off when they saw too little of the fault-free run, because the
// trials would have nothing to be compared with.
Subject SubjectOfTrials(const Subject& subject, const Rehearsal& rehearsal);

// The rehearsal that an earlier command left in this directory. Empty when its calls have a fixed order, because then it can be rehearsed
// again.
std::optional<Rehearsal> KeptRehearsal(const Subject& subject, const WorkDir& dir);

// Cuts the journals of the fault-free runs in `dir` down to what they hold, so that they can be copied to other machines.
Status PackRuns(const WorkDir& dir);

// The rehearsal that `cuaudit plan` left in `directory`, whatever the order of its calls.
Result<Rehearsal> RehearsalIn(const Subject& subject, const std::string& directory);

// The first driver call, counted from 1 by the clock, at which two runs differ: "call 12: cuMemAlloc, then cuStreamCreate".
std::string FirstDifference(const Evidence& first, const Evidence& second);

}  // namespace cuaudit::harness
