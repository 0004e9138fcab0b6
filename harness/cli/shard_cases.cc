// SPDX-License-Identifier: MIT
#include "harness/cli/shard_cases.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cycle/counts.h"

namespace cuaudit::harness {

Status CheckOperands(const Options& options, std::size_t most) {
  if (!options.operands.empty() && options.operands.size() <= most) return {};
  const std::span<const CommandRow> rows = Commands();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const CommandRow& one) { return one.command == options.command; });
  return {Exit::Usage, std::string("expected a plan: cuaudit ") + row->name + " [OPTIONS]" + row->usage};
}

Options SweepOf(const ShardPlan& plan, const PlannedCase& one, const Options& command, const std::string& work_dir) {
  Options options = one.options;
  options.command = kSweep;
  options.tool = command.tool;
  options.work_dir = work_dir;
  options.progress = command.progress;
  if (command.jobs != 0) options.jobs = command.jobs;
  if (plan.project) options.program = WithCount(options.program, kCyclesOfSweep);
  return options;
}

PlannedSubject SubjectOf(const PlanFolder& folder, const PlannedCase& one) { return {folder.Case(one.name), one.subject, one.runs}; }

Result<Rounds> ReadRounds(const PlanFolder& folder) {
  Rounds rounds;
  const std::uint64_t last = std::max<std::uint64_t>(folder.LastRound(), 1);
  for (std::uint64_t round = 1; round <= last; ++round) {
    Result<ShardPlan> plan = ReadShardPlan(folder, round);
    if (!plan.ok()) return plan.status();
    const bool follows = rounds.empty() || (plan->before == rounds.back().digest && plan->cases.size() == rounds.front().cases.size());
    if (!follows) return Status(Exit::Usage, folder.Round(round) + ": expected the plan that follows " + folder.Round(round - 1));
    rounds.push_back(std::move(*plan));
  }
  return rounds;
}

ShardSet ShardsOf(const Options& options, const PlanFolder& folder, const Rounds& rounds) {
  const std::vector<std::string> given(options.operands.begin() + 1, options.operands.end());
  return CollectShards(given.empty() ? ShardFiles(folder.Shards()) : given, rounds);
}

bool HasCycles(const ShardPlan& plan, std::uint64_t number, std::size_t in_case) {
  const PlannedCase& one = plan.cases[in_case];
  if (plan.round != 1 || one.cycles.empty()) return false;
  if (one.trials == 0) return number == 0;
  const std::vector<Piece> pieces = PiecesOf(plan, number);
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.in_case == in_case && piece.from == one.first; });
}

Result<FromShards> TrialsOf(const ShardSet& shards, const Rounds& rounds, std::size_t in_case) {
  FromShards found;
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    for (std::size_t number = 0; number < shards.rounds[round].size(); ++number) {
      const std::optional<Shard>& shard = shards.rounds[round][number];
      if (!shard.has_value()) {
        std::uint64_t trials = 0;
        for (const Piece& piece : PiecesOf(rounds[round], number)) trials += piece.in_case == in_case ? piece.trials : 0;
        if (trials == 0) continue;
        found.gaps.push_back("shard " + std::to_string(number) + " of round " + std::to_string(round + 1) + " is missing, with " +
                             std::to_string(trials) + " trials");
        continue;
      }
      for (const WrittenPiece& piece : shard->pieces) {
        if (piece.piece.in_case != in_case) continue;
        Result<std::vector<TrialResult>> trials = ReadPiece(*shard, piece);
        if (!trials.ok()) return trials.status();
        std::move(trials->begin(), trials->end(), std::back_inserter(found.trials));
      }
    }
  }
  return found;
}

void HideGoogleTestShard() {
  for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) unsetenv(name);
}

}  // namespace cuaudit::harness
