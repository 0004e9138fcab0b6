// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/cli/shard_work.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_settings.h"
#include "harness/sweep/trial_rows.h"
#include "reports/audit_json.h"
#include "reports/defect_words.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

struct Merge {
  const Options& options;
  const PlanFolder& folder;
  const Rounds& rounds;
  const ShardSet& shards;
  Progress progress;

  const PlannedCase& Case(std::size_t i) const { return rounds.front().cases[i]; }

  // Fails only when the shards do not fit the program that is here.
  CarriedOut Sweep(std::size_t i, const Session& session) {
    CarriedOut carried;
    const Result<SweepOptions> sweep = SweepOptionsOf(session.options());
    Result<FromShards> found = sweep.ok() ? TrialsOf(shards, rounds, i) : sweep.status();
    carried.status = found.status();
    if (!found.ok()) return carried;
    progress.Begin("trials", rounds.front().project ? Case(i).name : "");
    return CarryOutMerge(session, *sweep, SubjectOf(folder, Case(i)), std::move(*found), &progress);
  }
};

Exit MergeProgram(Merge merge) {
  Options options = SweepOf(merge.rounds.front(), merge.Case(0), merge.options, {});
  options.outputs = merge.options.outputs;
  options.output = merge.options.output;
  options.trials = merge.options.trials;
  const Status writable = CheckOutput(options.trials, "--trials");
  if (!writable.ok()) return Refuse(writable);
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  CarriedOut carried = merge.Sweep(0, *session);
  const auto rows = [&](const report::Run& run) {
    return options.trials.empty() ? Status() : WriteTrialRows(carried.rows, run, options.trials);
  };
  if (carried.progressed.signal != 0) {
    const Exit ended = EndInterrupted(carried.progressed, carried.run, *session);
    return Beside(ended, rows(carried.run));
  }
  if (!carried.status.ok()) return Fail(carried.status, *session);
  SaySweepWarnings(carried.run);
  Accept(*session, &carried.run);
  SaySweepTotals(carried.run);
  const Exit delivered = WriteOutputs(carried.run, *session);
  return Beside(delivered, rows(carried.run));
}

// Writes a result directory as `cuaudit audit` does.
class ProjectMerge {
 public:
  explicit ProjectMerge(Merge merge) : merge_(std::move(merge)), out_(merge_.options.out) {}

  Exit Run() {
    std::error_code error;
    std::filesystem::create_directories(out_, error);
    if (error) return Refuse(Status(Exit::Usage, "--out: " + out_ + ": cannot create the directory: " + error.message()));
    for (std::size_t i = 0; i < merge_.rounds.front().cases.size(); ++i) {
      const Status written = WriteCase(i);
      if (!written.ok()) return Refuse(written);
      if (signal_ != 0) return static_cast<Exit>(kSignalled + signal_);
    }
    const Status written = WriteIndex();
    return written.ok() ? Sum() : Refuse(written);
  }

 private:
  Status WriteCase(std::size_t i) {
    const PlannedCase& one = merge_.Case(i);
    report::IndexedCase& row = index_.cases.emplace_back();
    row.name = one.name;
    row.tags = one.tags;
    Options options = SweepOf(merge_.rounds.front(), one, merge_.options, {});
    options.trials = out_ + "/" + report::TrialsFile(one.name);
    const Result<Session> session = Session::Open(options);
    if (!session.ok()) return session.status();
    CarriedOut carried = merge_.Sweep(i, *session);
    signal_ = carried.progressed.signal;
    if (signal_ != 0) return {};
    if (!carried.status.ok()) {
      SayFailure(carried.status);
      carried.run = FailedReport(carried.status, *session);
    }
    Suppressions suppressions = session->suppressions();
    suppressions.Apply(Today(), &carried.run);
    std::vector<std::string> unused = suppressions.Unused();
    Exit exit = carried.status.ok() ? ExitOf(carried.run) : Exit::Environment;
    std::string line = one.name + ": " + OutcomeLine(carried.run);
    std::uint64_t defects =
        static_cast<std::uint64_t>(std::count_if(carried.run.defects.begin(), carried.run.defects.end(),
                                                 [](const report::Defect& defect) { return !report::IsSuppressed(defect); }));
    Output output;
    output.format = Format::Json;
    output.file = out_ + "/" + report::ReportFile(one.name, carried.run.mode);
    Status written = WriteReport(carried.run, output);
    if (written.ok()) written = WriteTrialRows(carried.rows, carried.run, options.trials);
    if (!written.ok()) return written;
    row.reports.push_back(report::ReportFile(one.name, carried.run.mode));
    row.trials = report::TrialsFile(one.name);
    if (!one.cycles.empty()) {
      const WrittenCycles* const cycles = CyclesOfCase(i);
      if (cycles == nullptr) {
        row.not_run = "the shard with its cycles is missing";
        line += "; cycles missing";
        exit = Worse(exit, Exit::Environment);
      } else {
        const std::string file = report::ReportFile(one.name, report::Mode::Cycles);
        written = WriteFile(out_ + "/" + file, cycles->report, Exit::Failure);
        if (!written.ok()) return written;
        row.reports.push_back(file);
        line += "; cycles " + cycles->line;
        defects += cycles->defects;
        exit = Worse(exit, static_cast<Exit>(cycles->exit));
        KeepCommon(cycles->unused_suppressions, &unused);
      }
    }
    if (!one.options.suppressions.empty()) {
      const auto [common, is_first] = unused_.emplace(one.options.suppressions, unused);
      if (!is_first) KeepCommon(unused, &common->second);
    }
    exit_ = Worse(exit_, exit);
    defects_ += defects;
    with_defects_ += exit == Exit::Findings ? 1 : 0;
    clean_ += exit == Exit::Clean ? 1 : 0;
    return WriteAll(1, report::ForTerminal(line) + "\n", "stdout");
  }

  const WrittenCycles* CyclesOfCase(std::size_t i) const {
    for (const std::optional<Shard>& shard : merge_.shards.rounds.front()) {
      if (!shard.has_value()) continue;
      for (const WrittenCycles& one : shard->cycles) {
        if (one.in_case == i) return &one;
      }
    }
    return nullptr;
  }

  Status WriteIndex() {
    for (const auto& [file, unused] : unused_)
      index_.unused_suppressions.insert(index_.unused_suppressions.end(), unused.begin(), unused.end());
    index_.generated = Timestamp();
    index_.tool_version = std::string(ToolVersion());
    std::ostringstream text;
    if (!report::WriteAuditIndex(index_, text)) return {Exit::Failure, "the index could not be written"};
    return WriteFile(out_ + "/" + report::kAuditFile, text.str(), Exit::Failure);
  }

  Exit Sum() const {
    for (const std::string& place : index_.unused_suppressions) Say("warning: " + place + ": the suppression fits no defect");
    const std::size_t cases = index_.cases.size();
    const auto of = [](std::uint64_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); };
    std::string line = of(cases, "case") + ": " + of(defects_, "defect") + " in " + std::to_string(with_defects_) + ", " +
                       std::to_string(clean_) + " clean";
    const std::size_t without = cases - with_defects_ - clean_;
    if (without != 0) line += ", " + std::to_string(without) + " without a result";
    const Status told = WriteAll(1, line + "; results in " + report::ForTerminal(out_) + "\n", "stdout");
    return told.ok() ? exit_ : Refuse(told);
  }

  Merge merge_;
  const std::string out_;
  report::AuditIndex index_;
  std::map<std::string, std::vector<std::string>> unused_;  // by file of suppressions
  Exit exit_ = Exit::Clean;
  std::uint64_t defects_ = 0;
  std::size_t with_defects_ = 0;
  std::size_t clean_ = 0;
  int signal_ = 0;
};

}  // namespace

Exit MergeCommand(const Options& options) {
  const Status usable = CheckOperands(options, options.operands.size());
  if (!usable.ok()) return Refuse(usable);
  HideGoogleTestShard();
  const PlanFolder folder(options.operands.front());
  const Result<Rounds> rounds = ReadRounds(folder);
  if (!rounds.ok()) return Refuse(rounds.status());
  const ShardSet shards = ShardsOf(options, folder, *rounds);
  for (const std::string& fault : shards.faults) Say(fault);
  Merge merge{options, folder, *rounds, shards, Progress(options.progress)};
  return rounds->front().project ? ProjectMerge(std::move(merge)).Run() : MergeProgram(std::move(merge));
}

}  // namespace cuaudit::harness
