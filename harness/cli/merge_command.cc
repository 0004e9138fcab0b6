// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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
  return DeliverSweep(*session, &carried);
}

// What the process that merged a case says of it.
struct MergedCase {
  Status status;  // of writing its files
  CaseSeen seen;
};

std::string Pack(const MergedCase& one) {
  const FinishedCase& result = one.seen.result;
  return PackParts(one.status.exit(), one.status.message(), result.reports, result.trials, one.seen.not_run, result.line, result.defects,
                   result.exit, one.seen.signal, result.unused_suppressions);
}

MergedCase Unpack(const std::string& bytes) {
  MergedCase one;
  Exit exit = Exit::Clean;
  std::string why;
  FinishedCase& result = one.seen.result;
  UnpackParts(bytes, &exit, &why, &result.reports, &result.trials, &one.seen.not_run, &result.line, &result.defects, &result.exit,
              &one.seen.signal, &result.unused_suppressions);
  one.status = Status(exit, std::move(why));
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
    merged.seen.signal = carried.progressed.signal;
    if (merged.seen.signal != 0) return merged;
    FinishedCase& result = merged.seen.result;
    result = SumOf(*session, &carried);
    result.line = one.name + ": " + result.line;
    const std::string file = report::ReportFile(one.name, carried.run.mode);
    merged.status = WriteReport(carried.run, {Format::Json, out_ + "/" + file});
    if (merged.status.ok()) merged.status = WriteTrialRows(carried.rows, carried.run, options.trials);
    result.reports.push_back(file);
    result.trials = report::TrialsFile(one.name);
    if (merged.status.ok() && !one.cycles.empty()) merged.status = AddCycles(i, &merged.seen);
    return merged;
  }

  Status AddCycles(std::size_t i, CaseSeen* seen) const {
    FinishedCase& result = seen->result;
    const WrittenCycles* const cycles = CyclesOfCase(i);
    if (cycles == nullptr) {
      seen->not_run = Words({Detail::CyclesShardMissing});
      result.line += "; cycles missing";
      result.exit = Worse(result.exit, Exit::Environment);
      return {};
    }
    const std::string file = report::ReportFile(merge_.Case(i).name, report::Mode::Cycles);
    result.reports.push_back(file);
    result.line += "; cycles " + cycles->line;
    result.defects += cycles->defects;
    result.exit = Worse(result.exit, static_cast<Exit>(cycles->exit));
    KeepCommon(cycles->unused_suppressions, &result.unused_suppressions);
    return WriteFile(out_ + "/" + file, cycles->report, Exit::Failure);
  }

  Status Take(std::size_t i, MergedCase merged) {
    const PlannedCase& one = merge_.Case(i);
    signal_ = merged.seen.signal;
    if (signal_ != 0) return {Exit::Failure, "stopped"};
    if (!merged.status.ok()) return merged.status;
    merged.seen.suppressions = one.options.suppressions;
    merged.seen.complete = true;
    seen_.push_back(std::move(merged.seen));
    return WriteAll(1, report::ForTerminal(seen_.back().result.line) + "\n", "stdout");
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

  Status WriteIndex() const {
    report::AuditIndex index;
    for (std::size_t i = 0; i < seen_.size(); ++i) index.cases.push_back(RowOf(seen_[i], merge_.Case(i).name, merge_.Case(i).tags));
    index.unused_suppressions = UnusedSuppressions(seen_);
    return harness::WriteIndex(std::move(index), out_);
  }

  Exit Sum() const {
    for (const std::string& place : UnusedSuppressions(seen_)) Say("warning: " + place + ": the suppression fits no defect");
    const AuditSum sum = SumOf(std::vector<bool>(seen_.size(), true), seen_);
    const Status told = WriteAll(1, sum.line + "; results in " + report::ForTerminal(out_) + "\n", "stdout");
    if (!told.ok()) return Refuse(told);
    return base_.has_value() ? base_->Compare(out_, sum.exit) : sum.exit;
  }

  Merge merge_;
  const std::optional<AuditBase> base_;
  const std::string out_;
  std::size_t jobs_ = 0;  // trials at a time of one case of several; 0: as its settings say
  std::vector<CaseSeen> seen_;
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
  if (!options.base.empty() && !rounds->front().project) return Refuse(Status(Exit::Usage, OptionFlag{"--base"}, kNoProject));
  Result<std::optional<AuditBase>> base = AuditBase::Read(options);
  if (!base.ok()) return Refuse(base.status());
  const ShardSet shards = ShardsOf(options, folder, *rounds);
  for (const std::string& fault : shards.faults) Say(fault);
  Merge merge{options, folder, *rounds, shards, std::make_unique<Progress>(options.progress)};
  if (!rounds->front().project) return MergeProgram(std::move(merge));
  return ProjectMerge(std::move(merge), std::move(*base)).Run();
}

}  // namespace cuaudit::harness
