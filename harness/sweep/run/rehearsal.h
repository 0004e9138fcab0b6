// SPDX-License-Identifier: MIT
// rehearsal.h: the fault-free runs of a program, what they tell about it, and which releases of counted references were settled in them;
// also one number for the content of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/process/work_dir.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/rehearsed.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {

// The fault-free runs that every trial is compared with.
//
//   Owns      journal and ledger of the first run, and of the other runs when the calls have no fixed order.
//   Threads   one thread.
//   Errors    Status when a run is unfit (observation.h) or was interrupted. Two different runs are no error: the case is drifting.

struct Rehearsal {
  Observation run;
  std::vector<Observation> others;  // of a case that drifts, has several threads, or leaves something else each time
  bool threaded = false;            // several threads or processes make calls
  bool drifting = false;            // two runs differ, if only in the order in which threads take turns
  bool same_work = true;            // each thread did the same in all runs
  Details drift;                    // "call 12: cuMemAlloc, then cuStreamCreate"; empty: no two runs differed
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
void AddRun(Observation run, SiteTexts* sites, Rehearsal* rehearsal);

// Number of driver objects of each kind that are held at ticket `last` in excess of those at ticket `first`: "2 module, 1 stream".
std::string MoreHeld(const Ledger& ledger, std::uint64_t first, std::uint64_t last);

// Runs the program once without a fault. `name`: the path of its journal and of its output, without their endings. A run that proves
// nothing is an error.
Result<Observation> RunFaultFree(const Subject& subject, const std::string& name, int* interrupted);

// Runs the program once, or twice to see whether it does the same each time. When the work of two runs differs, the program runs twice
// more, because a place that only some runs reach must be seen in one of them. `told` hears before the first run, and after each, how many
// are done and how many there will be.
using RunsSoFar = std::function<void(std::size_t done, std::size_t planned)>;
Result<Rehearsal> Rehearse(const Subject& subject, const WorkDir& dir, int runs, int* interrupted, const RunsSoFar& told = {});

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
words::DetailPart FirstDifference(const Evidence& first, const Evidence& second);

// Settles the releases of counted references with the acquisitions that the program means.
//
// The fold settles a release with the newest reference, because the records of one moment tell no more. Here call stacks tell more
// (harness/defect/reference_pairs.h); what they do not tell stays as it is. Only which reference remains changes, never how many. Nothing
// is done for handles that were never held from several places at once.

// Of a fault-free run. Fills Ledger::settled, which trials are settled by.
void SettleReferences(const faults::JournalView& journal, SiteTexts* sites, Ledger* ledger);

// Of a trial, as the rehearsal settles them; nullopt when the trial's ledger is right as it is.
std::optional<Ledger> SettledAsRehearsed(const Evidence& rehearsal, const Evidence& trial, SiteTexts* sites);

// One number for the content of the audited program, so that a sweep is only continued with its own trials.
//
//   Units     bytes of files. A file larger than kWholeBytes counts by its size, its first and its last MiB.
//   Errors    none: an unreadable file counts as absent.

inline constexpr std::size_t kWholeBytes = std::size_t{256} << 20U;

// For a regular file; 0 for anything else.
std::uint64_t FileContent(const std::string& path);

// Covers the program's file, each argument that names a file (also as --option=FILE) which the program does not write, and the modules that
// make calls in the fault-free run: by build id, or by size and modification time. A drifting program has no modules here, because another
// run may call from other ones.
std::uint64_t SubjectContent(const Subject& subject, const Rehearsal& rehearsal);

// The same for the modules that make driver calls, by their build ids.
std::uint64_t ModulesContent(const Rehearsal& rehearsal);

// Hash of the program and everything else that two sweeps must share to continue each other's trials: its command, what it is launched
// with, its content and its rehearsal.
std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge);

}  // namespace cuaudit::harness
