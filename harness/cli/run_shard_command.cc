// SPDX-License-Identifier: MIT
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/shard_work.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_options.h"
#include "harness/process/program.h"
#include "harness/sweep/trial_log.h"

namespace cuaudit::harness {
namespace {

std::optional<std::uint64_t> ToNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number of the shard: what was given, else the task of a Slurm array, else the shard of GoogleTest's protocol.
Result<std::uint64_t> NumberOf(const Options& options, std::uint64_t shards) {
  std::string from = "the number of the shard";
  std::string text = options.operands.size() > 1 ? options.operands[1] : "";
  const char* const task = std::getenv("SLURM_ARRAY_TASK_ID");
  const char* const of_test = std::getenv("GTEST_SHARD_INDEX");
  if (options.operands.size() < 2 && task != nullptr) {
    from = "SLURM_ARRAY_TASK_ID";
    text = task;
  } else if (options.operands.size() < 2 && of_test != nullptr) {
    from = "GTEST_SHARD_INDEX";
    text = of_test;
    const std::string total = VariableOf("GTEST_TOTAL_SHARDS");
    if (ToNumber(total) != shards) {
      return Status(Exit::Usage, "GTEST_TOTAL_SHARDS: '" + total + "': expected " + std::to_string(shards) + ", the shards of the plan");
    }
    // Who shards tests asks for this file as a sign that the program knows the protocol.
    if (const char* const sign = std::getenv("GTEST_SHARD_STATUS_FILE")) {
      const Status touched = WriteFile(sign, "", Exit::Usage);
      if (!touched.ok()) return Status(Exit::Usage, "GTEST_SHARD_STATUS_FILE: " + touched.message());
    }
  } else if (options.operands.size() < 2) {
    return Status(Exit::Usage, "expected the number of a shard, or SLURM_ARRAY_TASK_ID or GTEST_SHARD_INDEX in the environment");
  }
  const std::optional<std::uint64_t> number = ToNumber(text);
  if (!number.has_value() || *number >= shards) {
    return Status(Exit::Usage, from + ": '" + text + "': expected a number from 0 to " + std::to_string(shards - 1));
  }
  return *number;
}

class ShardRun {
 public:
  ShardRun(const Options& options, PlanFolder folder, const ShardPlan& plan, std::uint64_t number)
      : options_(options), folder_(std::move(folder)), plan_(plan), number_(number), progress_(options.progress) {}

  Exit Run() {
    const std::string work = folder_.Work(plan_.round, number_);
    std::error_code error;
    std::filesystem::create_directories(work, error);
    const Result<WorkDir> lock = WorkDir::Open(work);  // no second command carries out this shard
    if (!lock.ok()) return Refuse(lock.status());
    Result<ShardWriter> writer = ShardWriter::Open(folder_.Shard(plan_.round, number_), plan_, number_);
    if (!writer.ok()) return Refuse(writer.status());
    std::uint64_t trials = 0;
    for (const Piece& piece : PiecesOf(plan_, number_)) {
      const Status done = Sweep(piece, &*writer);
      if (signal_ != 0) return Interrupted();
      if (!done.ok()) return Failed(done);
      trials += piece.trials;
    }
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      if (!HasCycles(plan_, number_, i)) continue;
      const Status done = Cycles(i, &*writer);
      if (signal_ != 0) return Interrupted();
      if (!done.ok()) return Failed(done);
    }
    const Status written = writer->Finish();
    if (!written.ok()) return Refuse(written);
    std::filesystem::remove_all(work, error);
    Say("shard " + std::to_string(number_) + " of " + std::to_string(plan_.shards) + ", round " + std::to_string(plan_.round) + ": " +
        std::to_string(trials) + " trials: " + folder_.Shard(plan_.round, number_));
    return Exit::Clean;
  }

 private:
  Exit Interrupted() const {
    Say("interrupted; the same command goes on from here");
    return static_cast<Exit>(kSignalled + signal_);
  }

  static Exit Failed(const Status& status) {
    SayFailure(status);
    return status.exit();
  }

  Status Sweep(const Piece& piece, ShardWriter* writer) {
    const PlannedCase& one = plan_.cases[piece.in_case];
    Result<std::vector<PlannedTrial>> trials = TrialLines::Read(folder_.Trials(plan_.round, one.name), one, piece);
    if (!trials.ok()) return trials.status();
    const std::string work = folder_.Work(plan_.round, number_) + "/" + one.name;
    std::error_code error;
    std::filesystem::create_directories(work, error);
    const Result<Session> session = Session::Open(SweepOf(plan_, one, options_, work));
    if (!session.ok()) return session.status();
    const Result<EngineOptions> sweep = EngineOptionsOf(session->options());
    if (!sweep.ok()) return sweep.status();
    progress_.Begin("trials", plan_.project ? one.name : "");
    const CarriedOut carried = CarryOutShard(*session, *sweep, SubjectOf(folder_, one), std::move(*trials), plan_.round, &progress_);
    signal_ = carried.progressed.signal;
    if (signal_ != 0 || !carried.status.ok()) return carried.status;
    const std::string log = session->dir().File("trials.jsonl");
    const Result<std::string> text = ReadFile(log);
    if (!text.ok()) return text.status();
    Result<TrialLogContent> content = ParseTrialLog(*text, log);
    if (!content.ok()) return content.status();
    for (TrialResult& trial : content->trials) trial.index += piece.from;
    std::stable_sort(content->trials.begin(), content->trials.end(), [](const TrialResult& a, const TrialResult& b) {
      return std::tie(a.index, a.attempt) < std::tie(b.index, b.attempt);
    });
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(carried.run_time).count();
    return writer->Add(piece, content->trials, carried.progressed.done, static_cast<std::uint64_t>(time));
  }

  Status Cycles(std::size_t in_case, ShardWriter* writer) {
    const PlannedCase& one = plan_.cases[in_case];
    Options options = SweepOf(plan_, one, options_, folder_.Work(plan_.round, number_) + "/" + one.name + ".cycles");
    options.command = kCycles;
    options.program = one.options.program;
    options.n = one.cycles;
    std::error_code error;
    std::filesystem::create_directories(options.work_dir, error);
    const Result<Session> session = Session::Open(options);
    if (!session.ok()) return session.status();
    const Result<CyclesAsked> asked = CyclesOf(options);
    if (!asked.ok()) return asked.status();
    progress_.Begin("runs", one.name);
    CarriedOut carried = CarryOutCycles(*session, *asked, &progress_);
    signal_ = carried.progressed.signal;
    if (signal_ != 0) return {};
    FinishedCase sum = SumOf(*session, &carried);
    const std::string file = session->dir().File("cycles.json");
    Status written = WriteReport(carried.run, {Format::Json, file});
    if (!written.ok()) return written;
    Result<std::string> text = ReadFile(file);
    if (!text.ok()) return text.status();
    writer->Add(
        {in_case, std::move(*text), std::move(sum.line), sum.defects, static_cast<int>(sum.exit), std::move(sum.unused_suppressions)});
    return {};
  }

  const Options& options_;
  const PlanFolder folder_;
  const ShardPlan& plan_;
  const std::uint64_t number_;
  Progress progress_;
  int signal_ = 0;
};

}  // namespace

Exit RunShardCommand(const Options& options) {
  const Status usable = CheckOperands(options, 2);
  if (!usable.ok()) return Refuse(usable);
  const PlanFolder folder(options.operands.front());
  const Result<Rounds> rounds = ReadRounds(folder);
  if (!rounds.ok()) return Refuse(rounds.status());
  const std::uint64_t round = options.round == 0 ? rounds->size() : options.round;
  if (round > rounds->size()) return Refuse(ReadShardPlan(folder, round).status());
  const ShardPlan& plan = (*rounds)[round - 1];
  const Result<std::uint64_t> number = NumberOf(options, plan.shards);
  if (!number.ok()) return Refuse(number.status());
  HideGoogleTestShard();
  const std::string result = folder.Shard(round, *number);
  std::error_code error;
  if (std::filesystem::exists(result, error)) {
    const Result<Shard> done = OpenShard(result, *rounds);
    if (done.ok()) {
      Say("shard " + std::to_string(*number) + " is done: " + result);
      return Exit::Clean;
    }
    Say(done.status().message() + "; it is run again");
  }
  return ShardRun(options, folder, plan, *number).Run();
}

}  // namespace cuaudit::harness
