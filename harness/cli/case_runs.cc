// SPDX-License-Identifier: MIT
#include "harness/cli/case_runs.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "harness/cli/carry_out.h"
#include "harness/cycle/cycles.h"
#include "harness/options/sweep_options.h"
#include "harness/sweep/report_rows.h"
#include "reports/audit_json.h"
#include "reports/defect_words.h"
#include "reports/json_reader.h"
#include "reports/message.h"
#include "reports/text_page.h"

namespace cuaudit::harness {
namespace {

// "2 new or changed places untried"
std::string LeftOut(std::size_t places) {
  if (places == 0) return "all new and changed places tried";
  return std::to_string(places) + " new or changed " + (places == 1 ? "place" : "places") + " untried";
}

class CaseRuns {
 public:
  CaseRuns(const ProjectCase& one, const CasePlaces& places, const std::string& tool, const Turn& turn, const CaseSeen& before,
           Progress* progress)
      : case_(one),
        places_(places),
        turn_(turn),
        progress_(progress),
        options_(one.options),
        counts_(CountsOf(one)),
        sweep_(before.sweep),
        cycles_(before.cycles),
        no_time_(before.no_time) {
    options_.tool = tool;
  }

  CaseSeen Run() {
    if (turn_.sweep && (!sweep_.has_value() || sweep_->cut)) Sweep();
    const bool may_go_on = signal_ == 0 && sweep_.has_value() && !sweep_->refused;
    if (turn_.cycles && may_go_on && !counts_.empty() && !cycles_.has_value()) {
      no_time_ = CyclesTakeTooLong();
      if (!no_time_) Cycles();
    }
    return Seen();
  }

 private:
  void Sweep() {
    PartSeen part;
    Options options = options_;
    options.command = kSweep;
    options.program = WithCount(options.program, kCyclesOfSweep);
    options.work_dir = places_.work + "/sweep";
    options.trials = places_.out + "/" + report::TrialsFile(case_.name);
    const auto carry_out = [this](const Session& session) {
      Result<EngineOptions> sweep = EngineOptionsOf(session.options());
      if (!sweep.ok()) return Refused(sweep.status());
      sweep->places_first = turn_.spend.until.has_value() || turn_.before != nullptr;
      if (turn_.before != nullptr) sweep->before = *turn_.before;
      return CarryOutTrials(session, *sweep, {}, turn_.spend, progress_);
    };
    std::error_code error;
    const bool begun = access((options.work_dir + "/plan.txt").c_str(), R_OK) == 0;  // another user's, which cannot be read, is not removed
    CarriedOut carried;
    bool started = InSession(options, carry_out, &carried, &part);
    if (started && begun && carried.status.exit() == Exit::Usage && carried.progressed.signal == 0) {
      Say("warning: " + case_.name + ": the sweep begins anew: " + carried.status.message());
      std::filesystem::remove_all(options.work_dir, error);
      started = InSession(options, carry_out, &carried, &part);
    }
    if (started) {
      part.modules = std::move(carried.modules);
      part.run_time = carried.run_time;
      part.cut = carried.ended_early;
      if (carried.run.message.untried) part.not_run = report::kUntried;
      if (part.cut && turn_.before != nullptr) part.left_out = LeftOut(carried.new_untried);
      Take(std::move(carried.run), carried.status, carried.progressed, &part);
      if (carried.status.ok() || carried.progressed.signal != 0) {
        const Status written = WriteTrialRows(carried.rows, last_, options.trials);
        if (written.ok()) part.trials = report::TrialsFile(case_.name);
        else Fails(written, &part);
      }
    }
    if (sweep_.has_value() && part.run_time == Progress::Clock::duration::zero()) part.run_time = sweep_->run_time;
    sweep_ = std::move(part);
  }

  // The sweep has run the program with kCyclesOfSweep cycles. A program without {n} marks its cycles and runs once.
  bool CyclesTakeTooLong() const {
    if (!turn_.cycles_until.has_value()) return false;
    double runs = 1;
    const Result<std::vector<std::uint64_t>> counts = ParseCounts(counts_);
    if (TakesCount(case_.options.program) && counts.ok()) {
      runs = 0;
      for (const std::uint64_t count : *counts) runs += static_cast<double>(count) / static_cast<double>(kCyclesOfSweep);
    }
    using Seconds = std::chrono::duration<double>;
    const double left = Seconds(*turn_.cycles_until - Progress::Clock::now()).count();
    return left <= 0 || left < runs * Seconds(sweep_->run_time).count();
  }

  void Cycles() {
    PartSeen part;
    progress_->Begin("runs", case_.name);
    Options options = options_;
    options.command = kCycles;
    options.n = counts_;
    options.work_dir = places_.work + "/cycles";
    const auto carry_out = [this](const Session& session) {
      const Result<CyclesAsked> asked = CyclesOf(session.options());
      return asked.ok() ? CarryOutCycles(session, *asked, progress_) : Refused(asked.status());
    };
    CarriedOut carried;
    if (InSession(options, carry_out, &carried, &part)) Take(std::move(carried.run), carried.status, carried.progressed, &part);
    cycles_ = std::move(part);
  }

  CaseSeen Seen() {
    CaseSeen seen;
    FinishedCase& result = seen.result;
    seen.suppressions = options_.suppressions;
    seen.signal = signal_;
    seen.complete = signal_ == 0;
    std::string line;
    const auto add = [&](const PartSeen& part, const std::string& in_front) {
      if (!part.report.empty()) result.reports.push_back(part.report);
      if (seen.not_run.empty()) seen.not_run = part.not_run;
      result.defects += part.defects;
      result.exit = Worse(result.exit, part.exit);
      seen.complete = seen.complete && part.complete;
      seen.cut = seen.cut || part.cut;
      const std::string cut = !part.cut ? "" : Words({Detail::CutByBudget}) + (part.left_out.empty() ? "" : ", " + part.left_out);
      if (seen.left_out.empty() && part.cut) seen.left_out = in_front + cut;
      line += (line.empty() ? "" : "; ") + in_front + part.line + (part.cut ? "; " + cut : "");
    };
    if (sweep_.has_value()) {
      add(*sweep_, "");
      result.trials = sweep_->trials;
      seen.modules = sweep_->modules;
      result.unused_suppressions = sweep_->unused_suppressions;
    }
    const bool wants_cycles = sweep_.has_value() && !sweep_->refused && !counts_.empty();
    if (cycles_.has_value()) {
      add(*cycles_, "cycles ");
      KeepCommon(cycles_->unused_suppressions, &result.unused_suppressions);
    } else if (wants_cycles && signal_ == 0) {
      PartSeen left_out;
      left_out.not_run = Words({no_time_ ? Detail::NoTimeForCycles : Detail::CyclesNotYet});
      left_out.line = "left out";
      left_out.exit = Exit::Environment;
      left_out.cut = true;
      add(left_out, "cycles ");
    }
    result.line = case_.name + ": " + line;
    seen.sweep = std::move(sweep_);
    seen.cycles = std::move(cycles_);
    seen.no_time = no_time_;
    return seen;
  }

  static CarriedOut Refused(const Status& status) {
    CarriedOut refused;
    refused.status = status;
    return refused;
  }

  // False: nothing could be started, and the part says why.
  template <typename F>
  bool InSession(const Options& options, const F& carry_out, CarriedOut* carried, PartSeen* part) {
    const Result<Session> session = Session::Open(options);
    if (session.ok()) {
      *carried = carry_out(*session);
      if (!carried->status.ok() && carried->progressed.signal == 0) carried->run = FailedReport(carried->status, *session);
      Suppressions suppressions = session->suppressions();
      suppressions.Apply(Today(), &carried->run);
      part->unused_suppressions = suppressions.Unused();
      return true;
    }
    const Status why = AtItsPlace(case_, session.status());
    Say(why.message());
    part->refused = true;
    part->not_run = why.message();
    part->exit = ExitOf(why, {});
    part->line = "not run: " + why.message();
    return false;
  }

  // Writes the report.
  void Take(report::Run run, const Status& status, const Progressed& progressed, PartSeen* part) {
    part->complete = status.ok() && progressed.signal == 0 && !part->cut;
    if (progressed.signal != 0) {
      SetInterrupted(progressed, &run);
      signal_ = progressed.signal;
    } else {
      if (!status.ok()) SayFailure(status);
      part->exit = ExitOf(status, run);
    }
    part->defects = CountOf(run);
    part->line = OutcomeLine(run);
    const std::string file = report::ReportFile(case_.name, run.mode);
    const Status written = WriteReport(run, {Format::Json, places_.out + "/" + file});
    if (written.ok()) part->report = file;
    else Fails(written, part);
    last_ = std::move(run);
  }

  static void Fails(const Status& status, PartSeen* part) {
    Say(status.message());
    part->exit = Exit::Failure;
    part->complete = false;
  }

  const ProjectCase& case_;
  const CasePlaces& places_;
  const Turn& turn_;
  Progress* const progress_;
  Options options_;
  const std::string counts_;  // of the cycles; empty: none
  std::optional<PartSeen> sweep_;
  std::optional<PartSeen> cycles_;
  bool no_time_;  // for the cycles, in this turn or before
  int signal_ = 0;
  report::Run last_;
};

}  // namespace

CaseSeen CarryOutCase(const ProjectCase& one, const CasePlaces& places, const std::string& tool, const Turn& turn, const CaseSeen& before,
                      Progress* progress) {
  return CaseRuns(one, places, tool, turn, before, progress).Run();
}

std::string OutcomeLine(const report::Run& run) {
  const bool found = run.outcome == words::Outcome::Findings || run.outcome == words::Outcome::Left;
  const std::string left_out = report::WhyInPart(run.message);
  const std::string message = found ? report::DefectCount(run) + (left_out.empty() ? "" : "; " + left_out) : report::MessageLine(run);
  return message.empty() ? std::string(report::OutcomeName(run)) : message;
}

std::uint64_t CountOf(const report::Run& run) {
  return static_cast<std::uint64_t>(
      std::count_if(run.defects.begin(), run.defects.end(), [](const report::Defect& one) { return !report::IsSuppressed(one); }));
}

bool ExpireKept(const std::string& name, const std::string& out, FinishedCase* finished) {
  std::string line;
  std::uint64_t defects = 0;
  Exit exit = Exit::Clean;
  for (const std::string& file : finished->reports) {
    std::string bytes;
    report::Run run;
    if (!report::ReadReportFile(out + "/" + file, &bytes).empty() || !report::ReadJson(bytes, &run).empty()) return false;
    const auto expired = [&run] {
      return std::count_if(run.defects.begin(), run.defects.end(),
                           [](const report::Defect& one) { return one.suppressed && one.suppressed->expired; });
    };
    const auto before = expired();
    ExpireSuppressed(Today(), &run);
    if (expired() != before && !WriteReport(run, {Format::Json, out + "/" + file}).ok()) return false;
    line += (line.empty() ? "" : "; ") + std::string(run.mode == report::Mode::Cycles ? "cycles " : "") + OutcomeLine(run);
    defects += CountOf(run);
    exit = Worse(exit, ExitOf(run));
  }
  finished->line = name + ": " + line;
  finished->defects = defects;
  finished->exit = exit;
  return true;
}

void KeepCommon(const std::vector<std::string>& other, std::vector<std::string>* places) {
  std::erase_if(*places, [&](const std::string& place) { return std::find(other.begin(), other.end(), place) == other.end(); });
}

Exit Worse(Exit a, Exit b) {
  constexpr Exit kFromBest[] = {Exit::Clean, Exit::Environment, Exit::Findings, Exit::Usage, Exit::Failure};
  const auto rank = [&](Exit exit) { return std::find(std::begin(kFromBest), std::end(kFromBest), exit); };
  return rank(a) < rank(b) ? b : a;
}

AuditSum SumOf(const std::vector<bool>& selected, const std::vector<CaseSeen>& seen) {
  AuditSum sum;
  std::size_t asked = 0;
  std::size_t with_defects = 0;
  std::size_t clean = 0;
  std::size_t cut = 0;
  std::size_t without = 0;
  std::uint64_t defects = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!selected[i]) continue;
    const CaseSeen& one = seen[i];
    const Exit exit = one.result.exit;
    ++asked;
    sum.exit = Worse(sum.exit, exit);
    defects += one.result.defects;
    const bool is_clean = exit == Exit::Clean && !one.result.line.empty() && one.signal == 0 && !one.cut;
    with_defects += exit == Exit::Findings ? 1 : 0;
    cut += one.cut ? 1 : 0;  // whether it has defects or not
    clean += is_clean ? 1 : 0;
    without += exit != Exit::Findings && !one.cut && !is_clean ? 1 : 0;
  }
  sum.line = report::Plural(asked, "case") + ": " + report::Plural(defects, "defect") + " in " + std::to_string(with_defects) + ", " +
             std::to_string(clean) + " clean";
  if (cut != 0) sum.line += ", " + std::to_string(cut) + " cut short by the budget";
  if (without != 0) sum.line += ", " + std::to_string(without) + " without a result";
  return sum;
}

std::vector<std::string> UnusedSuppressions(const std::vector<CaseSeen>& seen) {
  std::map<std::string, std::vector<std::string>> by_file;
  std::set<std::string> unknown;
  for (const CaseSeen& one : seen) {
    if (one.suppressions.empty()) continue;
    if (!one.complete) unknown.insert(one.suppressions);
    const auto [unused, is_first] = by_file.emplace(one.suppressions, one.result.unused_suppressions);
    if (!is_first) KeepCommon(one.result.unused_suppressions, &unused->second);
  }
  std::vector<std::string> places;
  for (const auto& [file, unused] : by_file) {
    if (!unknown.contains(file)) places.insert(places.end(), unused.begin(), unused.end());
  }
  return places;
}

report::IndexedCase RowOf(const CaseSeen& seen, const std::string& name, const std::vector<std::string>& tags) {
  return {name, tags, seen.result.reports, seen.result.trials, seen.not_run, seen.left_out};
}

Status WriteIndex(report::AuditIndex index, const std::string& out) {
  index.generated = Timestamp();
  index.tool_version = std::string(ToolVersion());
  std::ostringstream text;
  if (!report::WriteAuditIndex(index, text)) return {Exit::Failure, "the index could not be written"};
  return WriteFile(out + "/" + report::kAuditFile, text.str(), Exit::Failure);
}

}  // namespace cuaudit::harness
