// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/cli/shard_work.h"
#include "harness/cli/side_by_side.h"
#include "harness/options/sweep_options.h"
#include "harness/process/program.h"
#include "harness/project/project.h"
#include "harness/shards/shard_plan.h"
#include "reports/escape.h"
#include "reports/text_page.h"

namespace cuaudit::harness {
namespace {

using report::Plural;

constexpr double kMicrosecondsInMinute = 60e6;

Result<std::vector<PlannedCase>> CasesOf(const Options& options) {
  std::vector<PlannedCase> cases;
  if (!options.program.empty()) {
    if (options.cycles != Options().cycles)
      return Status(Exit::Usage, OptionFlag{"--cycles"}, "expected a cuaudit.toml: a program alone is only swept");
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
  if (error) return {Exit::Usage, OptionFlag{"--to"}, path + ": cannot create the directory: " + error.message()};
  if (!std::filesystem::is_empty(path, error) || error)
    return {Exit::Usage, OptionFlag{"--to"}, path + ": expected a new or an empty directory"};
  return {};
}

// Plans a case, and keeps what is said meanwhile for the process that takes the answers in order.
template <typename Plan>
std::string AnswerOf(const Plan& plan) {
  KeptLines lines;
  const Planned one = plan();
  return PackParts(one.status.exit(), one.status.message(), one.status.detail(), one.status.not_exercised(), one.signal, one.driver,
                   one.subject, one.trials, one.digest, one.calls, one.microseconds, one.runs, lines.Take());
}

Planned AnsweredBy(const std::string& answer) {
  Planned one;
  Exit exit = Exit::Clean;
  std::string why;
  std::string detail;
  bool not_exercised = false;
  std::vector<std::string> said;
  UnpackParts(answer, &exit, &why, &detail, &not_exercised, &one.signal, &one.driver, &one.subject, &one.trials, &one.digest, &one.calls,
              &one.microseconds, &one.runs, &said);
  one.status = not_exercised ? Status::NotExercised(std::move(why)) : Status(exit, std::move(why));
  one.status = one.status.With(std::move(detail));
  for (const std::string& line : said) Say(line);
  return one;
}

// Rehearses the cases side by side and takes them in order, so the plan does not depend on how many are rehearsed at a time.
class FirstPlan {
 public:
  explicit FirstPlan(const Options& options) : options_(options), folder_(options.to) {
    plan_.tool = std::string(ToolVersion());
    plan_.project = options.program.empty();
  }

  Exit Make(std::vector<PlannedCase> cases) {
    plan_.cases = std::move(cases);
    SideBySide how;
    how.at_a_time = AtATime();
    how.name = [this](std::size_t i) { return plan_.cases[i].name; };
    how.bytes = [](std::size_t) { return kMemoryOfACase; };
    how.carry_out = [this](std::size_t i) { return AnswerOf([&] { return PlanCase(plan_.cases[i]); }); };
    how.take = [this](std::size_t i, const std::string& answer) { return Take(AnsweredBy(answer), &plan_.cases[i]); };
    Progress progress(options_.progress);
    how.progress = &progress;
    int signal = 0;
    const Status done = CarryOutSideBySide(plan_.cases.size(), how, &signal);
    if (signal == 0) signal = signal_;
    if (signal != 0) return static_cast<Exit>(kSignalled + signal);
    if (!done.ok()) {
      SayFailure(done);
      return done.exit();
    }
    plan_.shards = options_.shards;
    if (options_.minutes != 0) {
      const double shards = std::ceil(microseconds_ / (kMicrosecondsInMinute * static_cast<double>(options_.minutes)));
      plan_.shards = static_cast<std::uint64_t>(std::clamp(shards, 1.0, static_cast<double>(kMostShards)));
    }
    const Status written = WriteShardPlan(folder_, &plan_);
    if (!written.ok()) return Refuse(written);
    return Print(Plural(trials_, "first fault") + " of " + Plural(plan_.cases.size(), "case") + " in " + Plural(plan_.shards, "shard") +
                 ": " + report::ForTerminal(options_.to) + "\n");
  }

 private:
  // What rehearsing a case takes at most at its peak, of those that were measured (docs/MEASURED.md).
  static constexpr std::uint64_t kMemoryOfACase = std::uint64_t{64} << 20U;

  bool ByTime() const { return options_.minutes != 0 || !options_.measured.empty(); }

  // A run that is timed has the machine for itself.
  std::size_t AtATime() const {
    if (ByTime() || AnyAlone(plan_.cases)) return 1;
    return options_.jobs != 0 ? options_.jobs : UsableCores();
  }

  Planned PlanCase(const PlannedCase& one) const {
    Planned planned;
    planned.status = CanBeWritten(one) ? Status() : Status(Exit::Usage, one.name + ": expected command and settings in UTF-8");
    if (!planned.status.ok()) return planned;
    const Options sweep_options = SweepOf(plan_, one, options_, folder_.Case(one.name));
    std::error_code error;
    std::filesystem::create_directories(sweep_options.work_dir, error);
    const Result<Session> session = Session::Open(sweep_options);
    planned.status = session.status();
    if (!session.ok()) return planned;
    const Result<EngineOptions> sweep = EngineOptionsOf(sweep_options);
    planned.status = sweep.status();
    if (!sweep.ok()) return planned;
    // Of several cases only those that are done are shown.
    Progress progress(plan_.cases.size() == 1 ? options_.progress : "none");
    planned = PlanFirstRound(*session, *sweep, folder_.Trials(1, one.name), &progress);
    if (planned.signal != 0 || !planned.status.ok()) return planned;
    planned.driver = Name(session->subject().launch.driver);
    Result<RunDigests> runs = DigestRuns(folder_.Case(one.name));
    planned.status = runs.status();
    if (runs.ok()) planned.runs = std::move(*runs);
    return planned;
  }

  Status Take(Planned planned, PlannedCase* one) {
    signal_ = planned.signal;
    if (signal_ != 0) return {Exit::Failure, "stopped"};
    if (!planned.status.ok()) return planned.status;
    one->options.driver = planned.driver;  // the same on all machines
    one->subject = planned.subject;
    one->trials = planned.trials;
    one->digest = planned.digest;
    one->runs = std::move(planned.runs);
    std::optional<double> measured;
    if (!options_.measured.empty()) measured = MicrosecondsOfTrial(PlanFolder(options_.measured).Shards(), one->name);
    const double of_one = std::max(1.0, measured.value_or(static_cast<double>(planned.microseconds)));
    microseconds_ += of_one * static_cast<double>(one->trials);
    one->weight = ByTime() ? static_cast<std::uint64_t>(of_one) : std::max<std::uint64_t>(planned.calls, 1);
    trials_ += one->trials;
    return {};
  }

  const Options& options_;
  const PlanFolder folder_;
  ShardPlan plan_;
  double microseconds_ = 0;  // of all trials
  std::uint64_t trials_ = 0;
  int signal_ = 0;
};

Exit PlanFirst(const Options& options) {
  Result<std::vector<PlannedCase>> cases = CasesOf(options);
  if (!cases.ok()) return Refuse(cases.status());
  const Status made = MakeFolder(options.to);
  if (!made.ok()) return Refuse(made);
  return FirstPlan(options).Make(std::move(*cases));
}

// Plans the trials of the next round of a case and writes them.
Planned NextOf(const Options& options, const PlanFolder& folder, const Rounds& rounds, const ShardSet& shards, std::size_t i) {
  Planned planned;
  const PlannedCase& one = rounds.back().cases[i];
  const Result<Session> session = Session::Open(SweepOf(rounds.back(), one, options, {}));
  planned.status = session.status();
  if (!session.ok()) return planned;
  const Result<EngineOptions> sweep = EngineOptionsOf(session->options());
  planned.status = sweep.status();
  if (!sweep.ok()) return planned;
  Result<FromShards> found = TrialsOf(shards, rounds, i);
  planned.status = found.status();
  if (!found.ok()) return planned;
  const Result<std::vector<PlannedTrial>> more =
      PlanNextRound(*session, *sweep, SubjectOf(folder, one), std::move(*found), one.first + one.trials);
  planned.status = more.status();
  if (!more.ok()) return planned;
  planned.trials = more->size();
  const Result<std::uint64_t> written = TrialLines::Write(folder.Trials(rounds.back().round + 1, one.name), *more);
  planned.status = written.status();
  if (written.ok()) planned.digest = *written;
  return planned;
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
  SideBySide how;
  if (!AnyAlone(next.cases)) how.at_a_time = options.jobs != 0 ? options.jobs : UsableCores();
  how.name = [&](std::size_t i) { return next.cases[i].name; };
  how.bytes = [&](std::size_t i) { return MemoryOfCase(shards, i); };
  how.carry_out = [&](std::size_t i) { return AnswerOf([&] { return NextOf(options, folder, *rounds, shards, i); }); };
  how.take = [&](std::size_t i, const std::string& answer) {
    const Planned planned = AnsweredBy(answer);
    PlannedCase& one = next.cases[i];
    one.first += one.trials;
    one.trials = planned.trials;
    one.digest = planned.digest;
    trials += planned.trials;
    return planned.status;
  };
  Progress progress(options.progress);
  how.progress = &progress;
  int signal = 0;
  const Status planned = CarryOutSideBySide(next.cases.size(), how, &signal);
  if (signal != 0) return static_cast<Exit>(kSignalled + signal);
  if (!planned.ok()) return Refuse(planned);
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
  return Print(Plural(trials, "trial") + " of round " + std::to_string(next.round) + " in " + Plural(next.shards, "shard") + ": " +
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
