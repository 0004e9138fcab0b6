// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/shard_work.h"
#include "harness/cli/test_cases.h"
#include "harness/options/sweep_settings.h"
#include "harness/process/program.h"
#include "harness/project/project.h"
#include "harness/shards/shard_plan.h"
#include "harness/shards/slurm_script.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr double kMicrosecondsInMinute = 60e6;

Result<std::vector<PlannedCase>> CasesOf(const Options& options) {
  std::vector<PlannedCase> cases;
  if (!options.program.empty()) {
    if (options.cycles != Options().cycles) return Status(Exit::Usage, "--cycles: expected a cuaudit.toml: a program alone is only swept");
    PlannedCase& one = cases.emplace_back();
    one.name = kOnlyCase;
    one.options = options;
    return cases;
  }
  Result<std::vector<ProjectCase>> all = ReadCases(options);
  if (!all.ok()) return all.status();
  const Result<std::vector<bool>> selected = SelectCases(*all, {}, options.tag);
  if (!selected.ok()) return selected.status();
  for (std::size_t i = 0; i < all->size(); ++i) {
    if (!(*selected)[i]) continue;
    PlannedCase& one = cases.emplace_back();
    one.name = (*all)[i].name;
    one.tags = (*all)[i].tags;
    one.cycles = CountsOf((*all)[i]);
    one.options = (*all)[i].options;
  }
  return cases;
}

Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return {Exit::Usage, "--to: " + path + ": cannot create the directory: " + error.message()};
  if (!std::filesystem::is_empty(path, error) || error) return {Exit::Usage, "--to: " + path + ": expected a new or an empty directory"};
  return {};
}

std::string Counted(std::uint64_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); }

struct Planner {
  const Options& options;
  const PlanFolder folder;
  ShardPlan plan;
  double microseconds = 0;  // of all trials

  // Fills in the trials of a case and writes them.
  Status Add(PlannedCase one, int* signal) {
    if (!CanBeWritten(one)) return {Exit::Usage, one.name + ": expected command and settings in UTF-8"};
    const Options sweep_options = SweepOf(plan, one, options, folder.Case(one.name));
    std::error_code error;
    std::filesystem::create_directories(sweep_options.work_dir, error);
    const Result<Session> session = Session::Open(sweep_options);
    if (!session.ok()) return session.status();
    const Result<SweepOptions> sweep = SweepOptionsOf(sweep_options);
    if (!sweep.ok()) return sweep.status();
    const FirstRound first = PlanFirstRound(*session, *sweep);
    *signal = first.signal;
    if (first.signal != 0 || !first.status.ok()) return first.status;
    one.options.driver = Name(session->subject().launch.driver);  // the same on all machines
    one.subject = first.subject;
    one.trials = first.trials.size();
    std::optional<double> measured;
    if (!options.measured.empty()) measured = MicrosecondsOfTrial(PlanFolder(options.measured).Shards(), one.name);
    const double of_one = std::max(1.0, measured.value_or(static_cast<double>(first.microseconds)));
    microseconds += of_one * static_cast<double>(one.trials);
    const bool by_time = options.minutes != 0 || !options.measured.empty();
    one.weight = by_time ? static_cast<std::uint64_t>(of_one) : std::max<std::uint64_t>(first.calls, 1);
    Result<RunDigests> runs = DigestRuns(folder.Case(one.name));
    if (!runs.ok()) return runs.status();
    one.runs = std::move(*runs);
    const Result<std::uint64_t> written = TrialLines::Write(folder.Trials(1, one.name), first.trials);
    if (!written.ok()) return written.status();
    one.digest = *written;
    plan.cases.push_back(std::move(one));
    return {};
  }
};

Exit PlanFirst(const Options& options) {
  Result<std::vector<PlannedCase>> cases = CasesOf(options);
  if (!cases.ok()) return Refuse(cases.status());
  const Status made = MakeFolder(options.to);
  if (!made.ok()) return Refuse(made);
  Planner planner{options, PlanFolder(options.to), {}};
  ShardPlan& plan = planner.plan;
  plan.tool = std::string(ToolVersion());
  plan.project = options.program.empty();
  std::uint64_t trials = 0;
  for (PlannedCase& one : *cases) {
    int signal = 0;
    const Status added = planner.Add(std::move(one), &signal);
    if (signal != 0) return static_cast<Exit>(kSignalled + signal);
    if (!added.ok()) {
      SayFailure(added);
      return added.exit();
    }
    trials += plan.cases.back().trials;
  }
  plan.shards = options.shards;
  if (options.minutes != 0) {
    const double shards = std::ceil(planner.microseconds / (kMicrosecondsInMinute * static_cast<double>(options.minutes)));
    plan.shards = static_cast<std::uint64_t>(std::clamp(shards, 1.0, static_cast<double>(kMostShards)));
  }
  const Status written = WriteShardPlan(planner.folder, &plan);
  if (!written.ok()) return Refuse(written);
  return Print(Counted(trials, "first fault") + " of " + Counted(plan.cases.size(), "case") + " in " + Counted(plan.shards, "shard") +
               ": " + report::ForTerminal(options.to) + "\n");
}

Exit PlanNext(const Options& options) {
  const PlanFolder folder(options.operands.front());
  const Result<Rounds> rounds = ReadRounds(folder);
  if (!rounds.ok()) return Refuse(rounds.status());
  ShardPlan next = rounds->back();
  next.round = rounds->size() + 1;
  next.before = rounds->back().digest;
  if (options.round != 0 && options.round < next.round) {
    Say("round " + std::to_string(options.round) + " is planned already");
    return Exit::Clean;
  }
  const ShardSet shards = ShardsOf(options, folder, *rounds);
  for (const std::string& fault : shards.faults) Say(fault);
  for (const ShardPlan& round : *rounds) {
    if (!shards.Whole(round)) return Refuse(Status(Exit::Environment, "the next round depends on all shards: nothing was planned"));
  }
  std::uint64_t trials = 0;
  for (std::size_t i = 0; i < next.cases.size(); ++i) {
    PlannedCase& one = next.cases[i];
    const Result<Session> session = Session::Open(SweepOf(next, one, options, {}));
    if (!session.ok()) return Refuse(session.status());
    const Result<SweepOptions> sweep = SweepOptionsOf(session->options());
    if (!sweep.ok()) return Refuse(sweep.status());
    Result<FromShards> found = TrialsOf(shards, *rounds, i);
    if (!found.ok()) return Refuse(found.status());
    const std::size_t planned = one.first + one.trials;
    const Result<std::vector<PlannedTrial>> more = PlanNextRound(*session, *sweep, SubjectOf(folder, one), std::move(*found), planned);
    if (!more.ok()) return Refuse(more.status());
    one.first = planned;
    one.trials = more->size();
    trials += one.trials;
    const Result<std::uint64_t> written = TrialLines::Write(folder.Trials(next.round, one.name), *more);
    if (!written.ok()) return Refuse(written.status());
    one.digest = *written;
  }
  const std::string nothing_left = "nothing left to plan: " + report::ForTerminal(folder.path()) + "\n";
  // Who asks for a certain round carries out its shards in any case, as the script for Slurm does: they find nothing to do.
  if (trials == 0 && options.round == 0) {
    std::error_code error;
    std::filesystem::remove_all(std::filesystem::path(folder.Trials(next.round, kOnlyCase)).parent_path(), error);
    return Print(nothing_left);
  }
  const Status written = WriteShardPlan(folder, &next);
  if (!written.ok()) return Refuse(written);
  if (trials == 0) return Print(nothing_left);
  return Print(Counted(trials, "trial") + " of round " + std::to_string(next.round) + " in " + Counted(next.shards, "shard") + ": " +
               report::ForTerminal(folder.path()) + "\n");
}

}  // namespace

Exit PlanCommand(const Options& options) {
  const bool first = options.operands.empty();
  const bool counted = options.shards != 0;
  const bool timed = options.minutes != 0;
  if (first && counted == timed) return Refuse(Status(Exit::Usage, "expected either --shards or --minutes"));
  if (!first && !options.program.empty()) return Refuse(Status(Exit::Usage, "expected a program or a plan, not both"));
  if (!first && (counted || timed)) {
    return Refuse(Status(Exit::Usage, "expected no --shards or --minutes: further rounds have as many shards as the first one"));
  }
  HideGoogleTestShard();
  return options.operands.empty() ? PlanFirst(options) : PlanNext(options);
}

Exit SlurmCommand(const Options& options) {
  const Status usable = CheckOperands(options, 1);
  if (!usable.ok()) return Refuse(usable);
  const PlanFolder folder(options.operands.front());
  const Result<ShardPlan> plan = ReadShardPlan(folder, 1);
  if (!plan.ok()) return Refuse(plan.status());
  const Result<Program> tool = ResolveProgram(options.tool);
  if (!tool.ok()) return Refuse(tool.status());
  std::error_code error;
  SlurmRequest request;
  request.tool = tool->path;
  request.plan = std::filesystem::absolute(folder.path(), error).lexically_normal().string();
  request.directory = std::filesystem::current_path(error).string();
  request.sbatch = options.sbatch;
  return Print(SlurmScript(*plan, request));
}

}  // namespace cuaudit::harness
