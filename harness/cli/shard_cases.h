// SPDX-License-Identifier: MIT
// shard_cases.h: what the commands plan, run-shard and merge have in common.
//
//   Errors    one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/shard_work.h"
#include "harness/options/options.h"
#include "harness/process/status.h"
#include "harness/shards/shard_file.h"
#include "harness/shards/shard_plan.h"

namespace cuaudit::harness {

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
