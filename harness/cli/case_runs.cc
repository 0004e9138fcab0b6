// SPDX-License-Identifier: MIT
#include "harness/cli/case_runs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "harness/cli/carry_out.h"
#include "harness/cycle/counts.h"
#include "harness/options/sweep_settings.h"
#include "harness/sweep/trial_rows.h"
#include "reports/defect_words.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

// "1 defect, 3 findings"; "clean for 10 of 12 planned faults"; "not exercised: no fault fired".
std::string OutcomeLine(const report::Run& run) {
  const bool found = run.outcome == words::Outcome::Findings || run.outcome == words::Outcome::Left;
  const std::string message = found ? report::DefectCount(run) : report::MessageLine(run);
  return message.empty() ? std::string(report::OutcomeName(run)) : message;
}

class CaseRuns {
 public:
  CaseRuns(const ProjectCase& one, const CasePlaces& places, const std::string& tool, const Spend& spend,
           const std::optional<PartSeen>& cycles, Progress* progress)
      : case_(one), places_(places), spend_(spend), progress_(progress) {
    seen_.row.name = one.name;
    seen_.row.tags = one.tags;
    options_ = one.options;
    options_.tool = tool;
    seen_.cycles = cycles;
  }

  CaseSeen Run() {
    seen_.complete = true;
    Sweep();
    if (seen_.signal == 0 && seen_.row.not_run.empty() && !CountsOf(case_).empty()) {
      if (!seen_.cycles.has_value()) Cycles();
      if (seen_.cycles.has_value()) AddCycles(*seen_.cycles);
    }
    seen_.line = case_.name + ": " + line_;
    seen_.complete = seen_.complete && seen_.signal == 0 && seen_.row.not_run.empty();
    return std::move(seen_);
  }

 private:
  void Sweep() {
    Options options = options_;
    options.command = kSweep;
    options.program = WithCount(options.program, kCyclesOfSweep);
    options.work_dir = places_.work + "/sweep";
    options.trials = places_.out + "/" + report::TrialsFile(case_.name);
    const auto carry_out = [this](const Session& session) {
      Result<SweepOptions> sweep = SweepOptionsOf(session.options());
      if (!sweep.ok()) return Refused(sweep.status());
      sweep->places_first = spend_.until.has_value();
      return CarryOutSweep(session, *sweep, spend_, progress_);
    };
    std::error_code error;
    const bool begun = std::filesystem::exists(options.work_dir + "/plan.txt", error);
    CarriedOut carried;
    if (!InSession(options, carry_out, &carried)) return;
    if (begun && carried.status.exit() == Exit::Usage && carried.progressed.signal == 0) {
      Say("warning: " + case_.name + ": the program has changed since the sweep was begun, so it begins anew");
      std::filesystem::remove_all(options.work_dir, error);
      if (!InSession(options, carry_out, &carried)) return;
    }
    if (carried.ended_early) seen_.complete = false;
    seen_.modules = std::move(carried.modules);
    const PartSeen sweep = Taken(std::move(carried.run), carried.status, carried.progressed);
    Add(sweep);
    line_ += sweep.line;
    if (!carried.status.ok() && carried.progressed.signal == 0) return;
    const Status written = WriteTrialRows(carried.rows, last_, options.trials);
    if (written.ok()) seen_.row.trials = report::TrialsFile(case_.name);
    else Fails(written);
  }

  void Cycles() {
    if (spend_.cycles_until.has_value() && Progress::Clock::now() >= *spend_.cycles_until) {
      seen_.row.not_run = "the budget was spent before its cycles";
      seen_.exit = Worse(seen_.exit, Exit::Environment);
      line_ += "; cycles left out: the budget is spent";
      return;
    }
    progress_->Begin("runs", case_.name);
    Options options = options_;
    options.command = kCycles;
    options.n = CountsOf(case_);
    options.work_dir = places_.work + "/cycles";
    const auto carry_out = [this](const Session& session) {
      const Result<CyclesAsked> asked = CyclesOf(session.options());
      return asked.ok() ? CarryOutCycles(session, *asked, progress_) : Refused(asked.status());
    };
    CarriedOut carried;
    if (!InSession(options, carry_out, &carried)) return;
    seen_.cycles = Taken(std::move(carried.run), carried.status, carried.progressed);
  }

  void AddCycles(const PartSeen& cycles) {
    Add(cycles);
    line_ += "; cycles " + cycles.line;
  }

  void Add(const PartSeen& part) {
    if (!part.report.empty()) seen_.row.reports.push_back(part.report);
    seen_.defects += part.defects;
    seen_.exit = Worse(seen_.exit, part.exit);
    seen_.complete = seen_.complete && part.complete;
  }

  static CarriedOut Refused(const Status& status) {
    CarriedOut refused;
    refused.status = status;
    return refused;
  }

  // False: nothing could be started, and the row says why.
  template <typename F>
  bool InSession(const Options& options, const F& carry_out, CarriedOut* carried) {
    const Result<Session> session = Session::Open(options);
    if (session.ok()) {
      *carried = carry_out(*session);
      if (!carried->status.ok() && carried->progressed.signal == 0) carried->run = FailedReport(carried->status, *session);
      Suppressions suppressions = session->suppressions();
      suppressions.Apply(Today(), &carried->run);
      return true;
    }
    const Status why = AtItsPlace(case_, session.status());
    Say(why.message());
    seen_.row.not_run = why.message();
    seen_.exit = Worse(seen_.exit, why.exit() == Exit::Failure ? Exit::Failure : Exit::Environment);
    line_ += (line_.empty() ? "" : "; ") + std::string("not run: ") + why.message();
    return false;
  }

  // Writes the report.
  PartSeen Taken(report::Run run, const Status& status, const Progressed& progressed) {
    PartSeen part;
    part.complete = status.ok();
    if (progressed.signal != 0) {
      SetInterrupted(progressed, &run);
      seen_.signal = progressed.signal;
    } else {
      if (!status.ok()) SayFailure(status);
      part.exit = status.ok() ? ExitOf(run) : status.exit() == Exit::Failure ? Exit::Failure : Exit::Environment;
    }
    part.defects = static_cast<std::uint64_t>(
        std::count_if(run.defects.begin(), run.defects.end(), [](const report::Defect& one) { return !report::IsSuppressed(one); }));
    part.line = OutcomeLine(run);
    Output output;
    output.format = Format::Json;
    output.file = places_.out + "/" + report::ReportFile(case_.name, run.mode);
    const Status written = WriteReport(run, output);
    if (written.ok()) part.report = report::ReportFile(case_.name, run.mode);
    else Fails(written);
    last_ = std::move(run);
    return part;
  }

  void Fails(const Status& status) {
    Say(status.message());
    seen_.exit = Exit::Failure;
    seen_.complete = false;
  }

  const ProjectCase& case_;
  const CasePlaces& places_;
  const Spend& spend_;
  Progress* const progress_;
  Options options_;
  CaseSeen seen_;
  std::string line_;
  report::Run last_;
};

}  // namespace

CaseSeen CarryOutCase(const ProjectCase& one, const CasePlaces& places, const std::string& tool, const Spend& spend,
                      const std::optional<PartSeen>& cycles, Progress* progress) {
  return CaseRuns(one, places, tool, spend, cycles, progress).Run();
}

Exit Worse(Exit a, Exit b) {
  constexpr Exit kFromBest[] = {Exit::Clean, Exit::Environment, Exit::Findings, Exit::Usage, Exit::Failure};
  const auto rank = [&](Exit exit) { return std::find(std::begin(kFromBest), std::end(kFromBest), exit); };
  return rank(a) < rank(b) ? b : a;
}

}  // namespace cuaudit::harness
