// SPDX-License-Identifier: MIT
// shard_work.h: what the commands plan, run-shard and merge do together: the cases of a shard file, planning a round, carrying out a shard
// of it, and going on from all shards.
//
//   Threads   one thread.
//   Errors    Status: the program, its files or its fault-free run are not those of the plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/cli/carry_out.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/options/options.h"
#include "harness/process/status.h"
#include "harness/project/finished_case.h"
#include "harness/shards/shard_file.h"
#include "harness/shards/shard_plan.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {

// What was planned of a case in a round.
struct Planned {
  Status status;
  int signal = 0;
  std::string driver;  // that was chosen in the first round
  std::uint64_t subject = 0;
  std::uint64_t trials = 0;
  std::uint64_t digest = 0;        // of the file of the trials
  std::uint64_t calls = 0;         // of the fault-free run
  std::uint64_t microseconds = 0;  // of a fault-free run
  RunDigests runs;
};

// Rehearses the program in the work directory of the session, which keeps the fault-free runs, and writes its first faults to the file
// `trials`.
Planned PlanFirstRound(const Session& session, const EngineOptions& sweep, const std::string& trials, Progress* progress);

// The case of a plan as who carries it out needs it.
struct PlannedSubject {
  std::string runs;           // directory with the fault-free runs
  std::uint64_t subject = 0;  // that the program must have here, too
  RunDigests digests;         // of what the directory holds
};

// Carries out trials of one round in the work directory of the session, where its log of finished trials stays: their numbers count from 0.
// One fault-free run shows whether the program does here what it did where the plan was made.
CarriedOut CarryOutShard(const Session& session, const EngineOptions& sweep, const PlannedSubject& of, std::vector<PlannedTrial> trials,
                         std::uint64_t round, Progress* progress);

// What the shards of a case have found.
struct FromShards {
  std::vector<TrialResult> trials;
  std::vector<std::string> gaps;  // shards that are not there, one line each
};

// The trials of the round behind the first `planned` ones; none when the sweep needs no further trial.
Result<std::vector<PlannedTrial>> PlanNextRound(const Session& session, const EngineOptions& sweep, const PlannedSubject& of,
                                                FromShards found, std::size_t planned);

// The report of a sweep whose trials are those of the shards. Trials that no round has are run here: those that all shards together show to
// be needed. With gaps nothing is run, and the report is never clean.
CarriedOut CarryOutMerge(const Session& session, const EngineOptions& sweep, const PlannedSubject& of, FromShards found,
                         Progress* progress);

// What the commands plan, run-shard and merge have in common.
//
//   Errors    one line.

// What a sweep or its cycles come to, as the shards and the merge tell it: "1 defect, 3 findings". Applies the suppressions. What failed is
// said, and its report stands in the place of the run.
FinishedCase SumOf(const Session& session, CarriedOut* carried);

// The parts of an answer of CarryOutSideBySide as bytes and back. Not as text: paths and what programs write may hold bytes that are not
// UTF-8.
template <typename... Parts>
std::string PackParts(const Parts&... parts) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(nlohmann::json::array({nlohmann::json(parts)...}));
  return {bytes.begin(), bytes.end()};
}
template <typename... Parts>
void UnpackParts(const std::string& bytes, Parts*... parts) {
  const nlohmann::json all = nlohmann::json::from_cbor(bytes);
  std::size_t next = 0;
  (all.at(next++).get_to(*parts), ...);
}

// Whether some program should have the machine for itself (`jobs = 1`, a driver of the machine's own), so that cases come one after the
// other.
bool AnyAlone(const std::vector<PlannedCase>& cases);

// About what the process takes at its peak that takes the results of case `in_case` from the shards, for SideBySide::bytes.
std::uint64_t MemoryOfCase(const ShardSet& shards, std::size_t in_case);

// Whether there is a plan among the operands, and no more of them than `most`.
Status CheckOperands(const Options& options, std::size_t most);

// The options of the sweep of a case, with a work directory; empty: a fresh one.
Options SweepOf(const ShardPlan& plan, const PlannedCase& one, const Options& command, const std::string& work_dir);

PlannedSubject SubjectOf(const PlanFolder& folder, const PlannedCase& one);

// The plans of all rounds of a directory; at least one.
Result<Rounds> ReadRounds(const PlanFolder& folder);

// The shards of operands behind the plan, or those in its directory.
ShardSet ShardsOf(const Options& options, const PlanFolder& folder, const Rounds& rounds);

// Whether the shard carries out the cycles of the case.
bool HasCycles(const ShardPlan& plan, std::uint64_t number, std::size_t in_case);

// The trials that the shards have of one case, and which shards with trials of the case are not there.
Result<FromShards> TrialsOf(const ShardSet& shards, const Rounds& rounds, std::size_t in_case);

// GoogleTest's variables say which shard of the audit this is. An audited program with GoogleTest must not see them: each machine would
// audit other tests.
void HideGoogleTestShard();

}  // namespace cuaudit::harness
