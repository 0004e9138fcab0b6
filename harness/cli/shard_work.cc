// SPDX-License-Identifier: MIT
#include "harness/cli/shard_work.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/driver_choice.h"
#include "harness/cycle/cycles.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/report_rows.h"
#include "harness/sweep/run/rehearsal.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kNamedGaps = 3;
constexpr std::uint64_t kMostReserved = 1U << 16U;  // a plan may name any number of trials

// Whether the program is the one that was planned.
Status CheckSubject(const Session& session, const EngineOptions& sweep, const Rehearsal& run, std::uint64_t planned) {
  const std::uint64_t found = OptionsHash(sweep, SubjectHash(session.subject(), run, sweep.judge));
  if (found == planned) return {};
  return {Exit::Usage, session.subject().command.front() +
                           ": another program, build or settings than those of the plan, or it does something else " + "here (digest " +
                           Hex(found) + ", the plan has " + Hex(planned) + ")"};
}

Status Prepare(const Session& session, const EngineOptions& sweep, const PlannedSubject& of, FromShards found, SweepEngine* engine) {
  Status same = CheckRuns(of.runs, of.digests);
  if (!same.ok()) return same;
  Result<Rehearsal> rehearsal = RehearsalIn(session.subject(), of.runs);
  if (!rehearsal.ok()) return rehearsal.status();
  same = CheckSubject(session, sweep, *rehearsal, of.subject);
  if (!same.ok()) return same;
  engine->Know(std::move(found.trials), found.gaps.empty());
  const std::uint64_t subject = SubjectHash(session.subject(), *rehearsal, sweep.judge);
  return engine->Prepare(std::move(*rehearsal), subject);
}

// Which shards are missing; of many the first ones and how many more there are.
std::string Told(const std::vector<std::string>& gaps) {
  std::string told;
  for (std::size_t i = 0; i < std::min(gaps.size(), kNamedGaps); ++i) told += (i == 0 ? "" : "; ") + gaps[i];
  if (gaps.size() > kNamedGaps) told += "; and " + std::to_string(gaps.size() - kNamedGaps) + " more";
  return told;
}

}  // namespace

Planned PlanFirstRound(const Session& session, const EngineOptions& sweep, const std::string& trials, Progress* progress) {
  Planned planned;
  const auto begun = std::chrono::steady_clock::now();
  Result<Rehearsal> rehearsal = RehearseShown(session, 2, &planned.signal, progress);
  planned.status = rehearsal.status();
  if (planned.signal != 0 || !rehearsal.ok()) return planned;
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  planned.status = PackRuns(session.dir());
  if (!planned.status.ok()) return planned;
  planned.microseconds = static_cast<std::uint64_t>(time.count()) / std::max<std::size_t>(2, 1 + rehearsal->others.size());
  planned.calls = rehearsal->run.evidence().facts().calls.size();
  planned.subject = OptionsHash(sweep, SubjectHash(session.subject(), *rehearsal, sweep.judge));
  SessionTrials session_trials(session, sweep, SessionTrials::Of::Sweep);
  Result<TrialLines> lines = TrialLines::Open(trials);
  planned.status = lines.status();
  if (!lines.ok()) return planned;
  const auto add = [&](std::string_view fault, std::uint64_t site) { lines->Add(fault, site); };
  const Result<std::uint64_t> count = session_trials.engine().ListFirstFaults(std::move(*rehearsal), add);
  planned.status = count.status();
  if (!count.ok()) return planned;
  planned.trials = *count;
  const Result<std::uint64_t> digest = lines->Finish();
  planned.status = digest.status();
  if (digest.ok()) planned.digest = *digest;
  return planned;
}

CarriedOut CarryOutShard(const Session& session, const EngineOptions& sweep, const PlannedSubject& of, std::vector<PlannedTrial> trials,
                         std::uint64_t round, Progress* progress) {
  CarriedOut carried;
  carried.status = CheckRuns(of.runs, of.digests);
  if (!carried.status.ok()) return carried;
  Result<Rehearsal> planned = RehearsalIn(session.subject(), of.runs);
  carried.status = planned.status();
  if (!planned.ok()) return carried;
  Result<Rehearsal> here = RehearseShown(session, 1, &carried.progressed.signal, progress);
  carried.status = here.status();
  if (carried.progressed.signal != 0 || !here.ok()) return carried;
  // What one run cannot show: whether two differ, and which arguments are outputs.
  here->drifting = planned->drifting;
  here->same_work = planned->same_work;
  here->outputs = planned->outputs;
  carried.status = CheckSubject(session, sweep, *here, of.subject);
  if (!carried.status.ok()) return carried;
  SessionTrials session_trials(session, sweep, SessionTrials::Of::Sweep);
  SweepEngine& engine = session_trials.engine();
  carried.status = engine.PrepareShard(std::move(*planned), std::move(trials), static_cast<int>(round));
  if (carried.status.ok()) session_trials.SayResumed();
  const std::size_t before = engine.resumed();
  const auto begun = std::chrono::steady_clock::now();
  if (carried.status.ok()) carried.status = session_trials.Run(progress, &carried.progressed.signal);
  carried.run_time = std::chrono::steady_clock::now() - begun;
  carried.progressed.done = engine.done() - before;
  return carried;
}

Result<std::vector<PlannedTrial>> PlanNextRound(const Session& session, const EngineOptions& sweep, const PlannedSubject& of,
                                                FromShards found, std::size_t planned) {
  SessionTrials session_trials(session, sweep, SessionTrials::Of::Sweep);
  const Status prepared = Prepare(session, sweep, of, std::move(found), &session_trials.engine());
  if (!prepared.ok()) return prepared;
  const std::vector<PlannedTrial>& all = session_trials.engine().plan();
  return std::vector<PlannedTrial>(all.begin() + static_cast<std::ptrdiff_t>(std::min(planned, all.size())), all.end());
}

CarriedOut CarryOutMerge(const Session& session, const EngineOptions& sweep, const PlannedSubject& of, FromShards found,
                         Progress* progress) {
  CarriedOut carried;
  carried.run = session.NewReport();
  const std::vector<std::string> gaps = found.gaps;
  SessionTrials session_trials(session, sweep, SessionTrials::Of::Sweep);
  SweepEngine& engine = session_trials.engine();
  carried.status = Prepare(session, sweep, of, std::move(found), &engine);
  if (!carried.status.ok()) return carried;
  int signal = 0;
  if (!gaps.empty()) {
    engine.EndHere(Reason::ShardMissing);
  } else if (!engine.Finished()) {
    Say("trials that only all shards together show to be needed are run here, beginning with " +
        std::to_string(engine.total() - engine.done()));
    carried.status = session_trials.Run(progress, &signal);
  }
  carried.progressed = {signal, engine.done(), engine.trials(), engine.plans_more()};
  if (!carried.status.ok() && carried.progressed.signal == 0) return carried;
  engine.Report(&carried.run);
  if (!gaps.empty()) {  // said beside findings as well: without them, suppressed ones would leave a clean report
    carried.run.message.nothing = report::NothingPlanned::No;
    carried.run.message.told = Told(gaps);
    if (carried.run.outcome != words::Outcome::Findings) carried.run.outcome = words::Outcome::NotExercised;
  }
  if (!session.options().trials.empty()) carried.rows = engine.Rows();
  return carried;
}

FinishedCase SumOf(const Session& session, CarriedOut* carried) {
  if (!carried->status.ok()) {
    SayFailure(carried->status);
    carried->run = FailedReport(carried->status, session);
  }
  Suppressions suppressions = session.suppressions();
  suppressions.Apply(Today(), &carried->run);
  FinishedCase sum;
  sum.line = OutcomeLine(carried->run);
  sum.unused_suppressions = suppressions.Unused();
  sum.defects = CountOf(carried->run);
  sum.exit = ExitOf(carried->status, carried->run);
  return sum;
}

bool AnyAlone(const std::vector<PlannedCase>& cases) {
  return std::any_of(cases.begin(), cases.end(), [](const PlannedCase& one) {
    if (one.options.jobs == 1) return true;
    if (one.options.driver == Name(DriverKind::Simulated)) return false;
    const Result<Machine> machine = LookAround(one.options.real_driver);
    const Result<ChosenDriver> chosen = machine.ok() ? ChooseDriver(one.options.driver, *machine) : machine.status();
    return !chosen.ok() || chosen->driver != DriverKind::Simulated;
  });
}

std::uint64_t MemoryOfCase(const ShardSet& shards, std::size_t in_case) {
  // As much as the largest that was measured at its peak, with about 8,000 trials (docs/MEASURED.md), and for each byte of its shards what
  // parsed rows take, about, which nobody has measured.
  constexpr std::uint64_t kOfACase = std::uint64_t{49} << 20U;
  constexpr std::uint64_t kPerByte = 24;
  std::uint64_t bytes = 0;
  for (const auto& round : shards.rounds) {
    for (const std::optional<Shard>& shard : round) {
      if (!shard.has_value()) continue;
      for (const WrittenPiece& piece : shard->pieces) bytes += piece.piece.in_case == in_case ? piece.bytes : 0;
    }
  }
  return kOfACase + kPerByte * bytes;
}

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
  std::uint64_t planned = 0;
  for (const ShardPlan& round : rounds) planned += round.cases[in_case].trials;
  found.trials.reserve(std::min(planned, kMostReserved));
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
        Status read = ReadPiece(*shard, piece, &found.trials);
        if (!read.ok()) return read;
      }
    }
  }
  return found;
}

void HideGoogleTestShard() {
  for (const char* const name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE"}) unsetenv(name);
}

}  // namespace cuaudit::harness
