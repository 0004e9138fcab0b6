// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "harness/cli/case_runs.h"
#include "harness/cli/commands.h"
#include "harness/cli/comparison.h"
#include "harness/cli/session.h"
#include "harness/cli/shard_work.h"
#include "harness/cli/side_by_side.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_options.h"
#include "harness/sweep/report_rows.h"
#include "reports/audit_json.h"
#include "reports/defect_words.h"
#include "reports/escape.h"

namespace cuaudit::harness {
namespace {

constexpr const char* kNoProject =
    "expected the plan of a cuaudit.toml; the report of one program is compared by cuaudit compare BASE REPORT";

struct Merge {
  const Options& options;
  const PlanFolder& folder;
  const Rounds& rounds;
  const ShardSet& shards;
  std::unique_ptr<Progress> progress;

  const PlannedCase& Case(std::size_t i) const { return rounds.front().cases[i]; }

  // Fails only when the shards do not fit the program that is here.
  CarriedOut Sweep(std::size_t i, const Session& session) {
    CarriedOut carried;
    const Result<EngineOptions> sweep = EngineOptionsOf(session.options());
    Result<FromShards> found = sweep.ok() ? TrialsOf(shards, rounds, i) : sweep.status();
    carried.status = found.status();
    if (!found.ok()) return carried;
    progress->Begin("trials", rounds.front().project ? Case(i).name : "");
    return CarryOutMerge(session, *sweep, SubjectOf(folder, Case(i)), std::move(*found), progress.get());
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

// What the process that merged a case says of it.
struct MergedCase {
  Status status;  // of writing its files
  report::IndexedCase row;
  std::string line;
  std::uint64_t defects = 0;
  Exit exit = Exit::Clean;
  int signal = 0;
  std::vector<std::string> unused;  // suppressions
};

// As bytes and not as text: paths may hold bytes that are not UTF-8.
std::string Pack(const MergedCase& one) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(
      nlohmann::json::array({static_cast<int>(one.status.exit()), one.status.message(), one.row.reports, one.row.trials, one.row.not_run,
                             one.line, one.defects, static_cast<int>(one.exit), one.signal, one.unused}));
  return {bytes.begin(), bytes.end()};
}

MergedCase Unpack(const std::string& bytes) {
  const nlohmann::json parts = nlohmann::json::from_cbor(bytes);
  MergedCase one;
  one.status = Status(static_cast<Exit>(parts.at(0).get<int>()), parts.at(1).get<std::string>());
  one.row.reports = parts.at(2).get<std::vector<std::string>>();
  one.row.trials = parts.at(3).get<std::string>();
  one.row.not_run = parts.at(4).get<std::string>();
  one.line = parts.at(5).get<std::string>();
  one.defects = parts.at(6).get<std::uint64_t>();
  one.exit = static_cast<Exit>(parts.at(7).get<int>());
  one.signal = parts.at(8).get<int>();
  one.unused = parts.at(9).get<std::vector<std::string>>();
  return one;
}

// Writes a result directory as `cuaudit audit` does.
class ProjectMerge {
 public:
  ProjectMerge(Merge merge, std::optional<AuditBase> base) : merge_(std::move(merge)), base_(std::move(base)), out_(merge_.options.out) {}

  Exit Run() {
    std::error_code error;
    std::filesystem::create_directories(out_, error);
    if (error) return Refuse(Status(Exit::Usage, OptionFlag{"--out"}, out_ + ": cannot create the directory: " + error.message()));
    const std::size_t cases = merge_.rounds.front().cases.size();
    const std::size_t jobs = merge_.options.jobs != 0 ? merge_.options.jobs : UsableCores();
    SideBySide how;
    how.at_a_time = AnyAlone(merge_.rounds.front().cases) ? 1 : std::min(jobs, cases);
    how.name = [this](std::size_t i) { return merge_.Case(i).name; };
    how.bytes = [this](std::size_t i) { return MemoryOfCase(merge_.shards, i); };
    how.carry_out = [this](std::size_t i) { return Pack(MergeCase(i)); };
    how.take = [this](std::size_t i, const std::string& answer) { return Take(i, Unpack(answer)); };
    Progress of_cases(merge_.options.progress);
    if (how.at_a_time > 1) {
      jobs_ = std::max<std::size_t>(1, jobs / how.at_a_time);
      how.progress = &of_cases;
      merge_.progress = std::make_unique<Progress>("none");  // several bars would write over each other
    }
    int signal = 0;
    Status done = CarryOutSideBySide(cases, how, &signal);
    if (signal == 0) signal = signal_;
    if (signal != 0) return static_cast<Exit>(kSignalled + signal);
    if (done.ok()) done = WriteIndex();
    return done.ok() ? Sum() : Refuse(done);
  }

 private:
  MergedCase MergeCase(std::size_t i) {
    const PlannedCase& one = merge_.Case(i);
    MergedCase merged;
    Options options = SweepOf(merge_.rounds.front(), one, merge_.options, {});
    if (jobs_ != 0) options.jobs = options.jobs == 0 ? jobs_ : std::min(options.jobs, jobs_);
    options.trials = out_ + "/" + report::TrialsFile(one.name);
    const Result<Session> session = Session::Open(options);
    merged.status = session.status();
    if (!session.ok()) return merged;
    CarriedOut carried = merge_.Sweep(i, *session);
    merged.signal = carried.progressed.signal;
    if (merged.signal != 0) return merged;
    if (!carried.status.ok()) {
      SayFailure(carried.status);
      carried.run = FailedReport(carried.status, *session);
    }
    Suppressions suppressions = session->suppressions();
    suppressions.Apply(Today(), &carried.run);
    merged.unused = suppressions.Unused();
    merged.exit = carried.status.ok() ? ExitOf(carried.run) : Exit::Environment;
    merged.line = one.name + ": " + OutcomeLine(carried.run);
    merged.defects = static_cast<std::uint64_t>(std::count_if(carried.run.defects.begin(), carried.run.defects.end(),
                                                              [](const report::Defect& defect) { return !report::IsSuppressed(defect); }));
    Output output;
    output.format = Format::Json;
    output.file = out_ + "/" + report::ReportFile(one.name, carried.run.mode);
    merged.status = WriteReport(carried.run, output);
    if (merged.status.ok()) merged.status = WriteTrialRows(carried.rows, carried.run, options.trials);
    merged.row.reports.push_back(report::ReportFile(one.name, carried.run.mode));
    merged.row.trials = report::TrialsFile(one.name);
    if (merged.status.ok() && !one.cycles.empty()) AddCycles(i, &merged);
    return merged;
  }

  void AddCycles(std::size_t i, MergedCase* merged) const {
    const WrittenCycles* const cycles = CyclesOfCase(i);
    if (cycles == nullptr) {
      merged->row.not_run = Words({Detail::CyclesShardMissing});
      merged->line += "; cycles missing";
      merged->exit = Worse(merged->exit, Exit::Environment);
      return;
    }
    const std::string file = report::ReportFile(merge_.Case(i).name, report::Mode::Cycles);
    merged->status = WriteFile(out_ + "/" + file, cycles->report, Exit::Failure);
    merged->row.reports.push_back(file);
    merged->line += "; cycles " + cycles->line;
    merged->defects += cycles->defects;
    merged->exit = Worse(merged->exit, static_cast<Exit>(cycles->exit));
    KeepCommon(cycles->unused_suppressions, &merged->unused);
  }

  Status Take(std::size_t i, MergedCase merged) {
    const PlannedCase& one = merge_.Case(i);
    signal_ = merged.signal;
    if (signal_ != 0) return {Exit::Failure, "stopped"};
    if (!merged.status.ok()) return merged.status;
    merged.row.name = one.name;
    merged.row.tags = one.tags;
    index_.cases.push_back(std::move(merged.row));
    if (!one.options.suppressions.empty()) {
      const auto [common, is_first] = unused_.emplace(one.options.suppressions, merged.unused);
      if (!is_first) KeepCommon(merged.unused, &common->second);
    }
    exit_ = Worse(exit_, merged.exit);
    defects_ += merged.defects;
    with_defects_ += merged.exit == Exit::Findings ? 1 : 0;
    clean_ += merged.exit == Exit::Clean ? 1 : 0;
    return WriteAll(1, report::ForTerminal(merged.line) + "\n", "stdout");
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
    if (!told.ok()) return Refuse(told);
    return base_.has_value() ? base_->Compare(out_, exit_) : exit_;
  }

  Merge merge_;
  const std::optional<AuditBase> base_;
  const std::string out_;
  std::size_t jobs_ = 0;  // trials at a time of one case of several; 0: as its settings say
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
  std::optional<AuditBase> base;
  if (!options.base.empty()) {
    if (!rounds->front().project) return Refuse(Status(Exit::Usage, OptionFlag{"--base"}, kNoProject));
    Result<AuditBase> read = AuditBase::Read(options);
    if (!read.ok()) return Refuse(read.status());
    base = std::move(*read);
  }
  const ShardSet shards = ShardsOf(options, folder, *rounds);
  for (const std::string& fault : shards.faults) Say(fault);
  Merge merge{options, folder, *rounds, shards, std::make_unique<Progress>(options.progress)};
  if (!rounds->front().project) return MergeProgram(std::move(merge));
  return ProjectMerge(std::move(merge), std::move(base)).Run();
}

}  // namespace cuaudit::harness
