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

CarriedOut SweepOnce(const Session& session) {
  const Result<SweepOptions> sweep = SweepOptionsOf(session.options());
  if (sweep.ok()) return CarryOutSweep(session, *sweep);
  CarriedOut refused;
  refused.status = sweep.status();
  return refused;
}

CarriedOut CyclesOnce(const Session& session) {
  const Result<CyclesAsked> asked = CyclesOf(session.options());
  if (asked.ok()) return CarryOutCycles(session, *asked);
  CarriedOut refused;
  refused.status = asked.status();
  return refused;
}

class CaseRuns {
 public:
  CaseRuns(const ProjectCase& one, const CasePlaces& places, const std::string& tool) : case_(one), places_(places) {
    seen_.row.name = one.name;
    seen_.row.tags = one.tags;
    options_ = one.options;
    options_.tool = tool;
  }

  CaseSeen Run() {
    Sweep();
    if (seen_.signal == 0 && seen_.row.not_run.empty() && !CountsOf(case_).empty()) Cycles();
    seen_.line = case_.name + ": " + line_;
    return std::move(seen_);
  }

 private:
  void Sweep() {
    Options options = options_;
    options.command = kSweep;
    options.program = WithCount(options.program, kCyclesOfSweep);
    options.work_dir = places_.work + "/sweep";
    options.trials = places_.out + "/" + report::TrialsFile(case_.name);
    CarriedOut carried;
    if (!InSession(options, &SweepOnce, &carried)) return;
    if (carried.status.exit() == Exit::Usage && carried.progressed.signal == 0) {
      // The directory may hold the trials of another build of the program.
      std::error_code error;
      std::filesystem::remove_all(options.work_dir, error);
      if (!InSession(options, &SweepOnce, &carried)) return;
    }
    seen_.modules = std::move(carried.modules);
    Take(std::move(carried.run), carried.status, carried.progressed, "");
    if (!carried.status.ok() && carried.progressed.signal == 0) return;
    const Status written = WriteTrialRows(carried.rows, last_, options.trials);
    if (written.ok()) seen_.row.trials = report::TrialsFile(case_.name);
    else Fails(written);
  }

  void Cycles() {
    Options options = options_;
    options.command = kCycles;
    options.n = CountsOf(case_);
    options.work_dir = places_.work + "/cycles";
    CarriedOut carried;
    if (!InSession(options, &CyclesOnce, &carried)) return;
    Take(std::move(carried.run), carried.status, carried.progressed, "cycles ");
  }

  // False: nothing could be started, and the row says why.
  bool InSession(const Options& options, CarriedOut (*carry_out)(const Session&), CarriedOut* carried) {
    const Result<Session> session = Session::Open(options);
    if (session.ok()) {
      *carried = carry_out(*session);
      if (!carried->status.ok() && carried->progressed.signal == 0) carried->run = FailedReport(carried->status, *session);
      return true;
    }
    const Status why = AtItsPlace(case_, session.status());
    Say(why.message());
    seen_.row.not_run = why.message();
    seen_.exit = Worse(seen_.exit, why.exit() == Exit::Failure ? Exit::Failure : Exit::Environment);
    line_ += (line_.empty() ? "" : "; ") + std::string("not run: ") + why.message();
    return false;
  }

  void Take(report::Run run, const Status& status, const Progressed& progressed, const std::string& mode) {
    if (progressed.signal != 0) {
      SetInterrupted(progressed, &run);
      seen_.signal = progressed.signal;
    } else {
      if (!status.ok()) SayFailure(status);
      seen_.exit = Worse(seen_.exit, status.ok() ? ExitOf(run) : status.exit() == Exit::Failure ? Exit::Failure : Exit::Environment);
    }
    seen_.defects += run.defects.size();
    line_ += (line_.empty() ? "" : "; ") + mode + OutcomeLine(run);
    const std::string file = report::ReportFile(case_.name, run.mode);
    Output output;
    output.format = Format::Json;
    output.file = places_.out + "/" + file;
    const Status written = WriteReport(run, output);
    if (written.ok()) seen_.row.reports.push_back(file);
    else Fails(written);
    last_ = std::move(run);
  }

  void Fails(const Status& status) {
    Say(status.message());
    seen_.exit = Exit::Failure;
  }

  const ProjectCase& case_;
  const CasePlaces& places_;
  Options options_;
  CaseSeen seen_;
  std::string line_;
  report::Run last_;
};

}  // namespace

CaseSeen CarryOutCase(const ProjectCase& one, const CasePlaces& places, const std::string& tool) {
  return CaseRuns(one, places, tool).Run();
}

Exit Worse(Exit a, Exit b) {
  constexpr Exit kFromBest[] = {Exit::Clean, Exit::Environment, Exit::Findings, Exit::Usage, Exit::Failure};
  const auto rank = [&](Exit exit) { return std::find(std::begin(kFromBest), std::end(kFromBest), exit); };
  return rank(a) < rank(b) ? b : a;
}

}  // namespace cuaudit::harness
