// SPDX-License-Identifier: MIT
#include "harness/cli/carry_out.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "harness/cycle/cycles.h"
#include "harness/options/option_rows.h"
#include "harness/process/program.h"
#include "harness/process/shell.h"
#include "harness/project/finished_case.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/report_rows.h"
#include "harness/sweep/run/rehearsal.h"
#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/message.h"
#include "reports/text_page.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint64_t kGoOn = 8;  // times the last count of --n
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 60U;

// What two sweeps of the program must share to continue each other, beside what its file and its fault-free runs tell.
Settings SharedSettings(const Session& session) {
  Settings settings = SettingsOf(session.options());
  settings.emplace("the command", TomlString(ShellJoin(session.subject().command)));
  settings.emplace("--driver", Name(session.subject().launch.driver));
  settings.emplace("the version of cuaudit", TomlString(ToolVersion()));
  std::error_code error;
  const std::filesystem::path directory = session.subject().directory.empty() ? "." : session.subject().directory;
  settings.emplace("the working directory", TomlString(std::filesystem::canonical(directory, error).string()));
  const Result<std::vector<std::string>> inherited = CurrentEnvironment();
  if (inherited.ok()) AddVariables(*inherited, &settings);  // a session is only opened with one
  return settings;
}

// A sweep that continues in its directory uses the fault-free runs that it began with, when new ones could differ.
Result<Rehearsal> RehearseForSweep(const Session& session, const EngineOptions& sweep, int* interrupted,
                                   Progress::Clock::duration* run_time, Progress* progress) {
  Status same = CheckSettings(session.dir(), SharedSettings(session));
  if (!same.ok()) return same;
  std::optional<Rehearsal> kept = KeptRehearsal(session.subject(), session.dir());
  if (kept && HoldsPlanOf(session.dir(), sweep, SubjectHash(session.subject(), *kept, sweep.judge))) return std::move(*kept);
  kept.reset();
  const Progress::Clock::time_point begun = Progress::Clock::now();
  Result<Rehearsal> rehearsal = RehearseShown(session, 2, interrupted, progress);
  if (rehearsal.ok()) {
    const std::size_t runs = std::max<std::size_t>(2, 1 + rehearsal->others.size());
    *run_time = (Progress::Clock::now() - begun) / static_cast<Progress::Clock::rep>(runs);
  }
  return rehearsal;
}

std::vector<std::string> ModulesOf(const Rehearsal& rehearsal) {
  std::vector<std::string> modules;
  const faults::JournalView& journal = rehearsal.run.journal;
  for (std::size_t i = 0; i < journal.modules().size(); ++i) modules.emplace_back(journal.ModulePath(i));
  return modules;
}

// Carries out all trials, or the one of the faults `only`.
void RunTrials(const Session& session, const EngineOptions& sweep, Rehearsal rehearsal, const std::vector<std::string>& only,
               const Spend& spend, Progress* progress, CarriedOut* carried) {
  SessionTrials trials(session, sweep, only.empty() ? SessionTrials::Of::Sweep : SessionTrials::Of::Replay);
  SweepEngine& engine = trials.engine();
  Status& status = carried->status;
  if (only.empty()) {
    carried->modules = ModulesOf(rehearsal);
    const std::uint64_t subject = SubjectHash(session.subject(), rehearsal, sweep.judge);
    status = engine.Prepare(std::move(rehearsal), subject, SharedSettings(session));
  } else {
    status = engine.PrepareOne(std::move(rehearsal), only);
  }
  if (status.ok()) {
    if (engine.rehearsal().drifting) Say("warning: two fault-free runs differ at " + Words(engine.rehearsal().drift));
    trials.SayResumed();
    carried->nothing_anew = engine.Finished() && engine.resumed() != 0;
  }
  bool told = !only.empty();
  const auto goes_on = [&] {
    const bool spent = spend.until.has_value() && Progress::Clock::now() >= *spend.until;
    const bool far_enough = (spend.first_faults_only && engine.round() > 1) || (spend.new_places_only && engine.NewPlacesDone());
    if (engine.done() != 0 && (spent || far_enough)) {
      engine.EndHere();
      carried->ended_early = true;
      return false;
    }
    if (!told && engine.first_found() != nullptr) {
      told = true;
      progress->Clear();
      SayInPassing(progress->Named(FirstFound(*engine.first_found(), engine.found_before() ? 0 : engine.done(), engine.total())));
    }
    return true;
  };
  int signal = 0;
  if (status.ok()) {
    status = trials.Run(progress, &signal, goes_on);
  } else {
    progress->Clear();
  }
  if (status.ok() || signal != 0) engine.Report(&carried->run);
  if (carried->ended_early) carried->new_untried = engine.NewPlacesUntried();
  if (carried->ended_early && !engine.PlacesTried()) {
    // Said beside findings as well: without them, suppressed ones would leave a clean report.
    carried->run.message.untried = {engine.done(), engine.total()};
    if (carried->run.outcome == words::Outcome::Clean) carried->run.outcome = words::Outcome::NotExercised;
  }
  if (!session.options().trials.empty()) carried->rows = engine.Rows();
  carried->progressed = {signal, carried->run.totals.trials, engine.trials(), engine.plans_more()};
}

}  // namespace

SessionTrials::SessionTrials(const Session& session, const EngineOptions& sweep, Of of)
    : session_(session),
      of_(of),
      runner_([this] { return MakeTrials(); }),
      engine_(&runner_, &session.dir(), sweep, session.Reproduce(), &sites_) {}

std::unique_ptr<Runner> SessionTrials::MakeTrials() {
  const Options& options = session_.options();
  const Rehearsal& rehearsal = engine_.rehearsal();
  subject_ = SubjectOfTrials(session_.subject(), rehearsal);
  const SpawnOptions resources{session_.jobs(), options.keep, TrialCapacity(subject_, rehearsal.run),
                               of_ == Of::Sweep ? "trial-" : "replay-", session_.forks()};
  const Isolation wished = of_ == Of::Sweep ? Named<Isolation>(options.isolation).value_or(Isolation::Unknown) : Isolation::Spawn;
  return MakeRunner(wished, subject_, session_.dir(), resources, rehearsal);
}

void SessionTrials::SayResumed() const {
  if (engine_.resumed() == 0) return;
  Say("going on: " + std::to_string(engine_.resumed()) + " of " + std::to_string(engine_.trials()) + " trials are done");
}

Status SessionTrials::Run(Progress* progress, int* interrupted, const std::function<bool()>& goes_on) {
  Status status;
  while (status.ok() && !engine_.Finished() && (goes_on == nullptr || goes_on())) {
    progress->Show(engine_.done(), engine_.total());
    status = engine_.Step();
  }
  progress->Clear();
  *interrupted = status.ok() ? 0 : runner_.interrupted();
  runner_.End();
  return status;
}

Result<Rehearsal> RehearseShown(const Session& session, int runs, int* interrupted, Progress* progress) {
  progress->Count("fault-free runs");
  const auto told = [progress](std::size_t done, std::size_t planned) { progress->Show(done, planned); };
  Result<Rehearsal> rehearsal = Rehearse(session.subject(), session.dir(), runs, interrupted, told);
  progress->Count("trials");
  return rehearsal;
}

void SaySweepWarnings(const report::Run& run) {
  for (const Reason why : {Reason::ProbesSanitizer, Reason::ProbesDescriptors, Reason::ProbesStopped, Reason::ProbesNotLoaded}) {
    if (report::Skipped(run, why) != 0) Say("warning: " + Words(why));
  }
  const std::uint64_t unmodelled = report::Skipped(run, Reason::Unmodelled);
  if (unmodelled == 0) return;
  Say("warning: " + report::Plural(unmodelled, "call") + " answered NOT_SUPPORTED, unknown to the simulated driver");
}

namespace {

void SaySweepTotals(const report::Run& run) {
  const std::string shown = report::HostNotes(run);
  Say(report::Plural(run.totals.trials, "trial") + ", " + std::to_string(run.totals.fired) + " fired, " + report::DefectCount(run) +
      (run.coverage->pruned == 0 ? "" : ", " + std::to_string(run.coverage->pruned) + " pruned as equal (--no-prune tries them)") +
      (shown.empty() ? "" : ", " + shown));
}

}  // namespace

Exit DeliverSweep(const Session& session, CarriedOut* carried) {
  report::Run& run = carried->run;
  const std::string& trials = session.options().trials;
  const auto with_rows = [&](Exit delivered) {
    return Beside(delivered, trials.empty() ? Status() : WriteTrialRows(carried->rows, run, trials));
  };
  if (carried->progressed.signal != 0) return with_rows(EndInterrupted(carried->progressed, run, session));
  if (!carried->status.ok()) return Fail(carried->status, session);
  SaySweepWarnings(run);
  Accept(session.suppressions(), &run);
  if (carried->ended_early)
    Say("warning: the budget is spent: " + std::to_string(report::Skipped(run, Reason::OverBudget)) + " trials were left out");
  SaySweepTotals(run);
  return with_rows(WriteOutputs(run, session.options()));
}

CarriedOut CarryOutTrials(const Session& session, const EngineOptions& sweep, const std::vector<std::string>& faults, const Spend& spend,
                          Progress* progress) {
  CarriedOut carried;
  carried.run = session.NewReport();
  // A replay needs one fault-free run to compare with. Faults addressed by site belong to a program that does not do the same each time.
  const int runs = std::any_of(faults.begin(), faults.end(), IsBySite) ? 2 : 1;
  int interrupted = 0;
  Result<Rehearsal> rehearsal = faults.empty() ? RehearseForSweep(session, sweep, &interrupted, &carried.run_time, progress)
                                               : RehearseShown(session, runs, &interrupted, progress);
  if (interrupted != 0 || !rehearsal.ok()) {
    carried.progressed.signal = interrupted;
    carried.progressed.planned = faults.size();
    carried.status = rehearsal.status();
    return carried;
  }
  RunTrials(session, sweep, std::move(*rehearsal), faults, spend, progress, &carried);
  return carried;
}

Result<CyclesAsked> CyclesOf(const Options& options) {
  Result<std::vector<std::uint64_t>> counts = ParseCounts(options.n);
  if (!counts.ok()) return counts.status();
  const Result<std::uint64_t> detect = ParseDetect(options.detect);
  if (!detect.ok()) return detect.status();
  return CyclesAsked{std::move(*counts), *detect};
}

CarriedOut CarryOutCycles(const Session& session, const CyclesAsked& asked, Progress* shown) {
  const Options& options = session.options();
  CarriedOut carried;
  carried.run = session.NewReport();
  CyclesProgress progress;
  progress.told = [&] { shown->Show(progress.done, progress.planned); };
  const std::string reproduce = session.CommandLine(kCycles) + " -- " + ShellJoin(session.subject().command);
  CertificateOptions certificate;
  certificate.warm_up = options.warm_up;
  certificate.detect = asked.detect;
  certificate.told = [shown](std::size_t done, std::size_t planned) {
    if (done == 0) shown->Count("runs that judge the meters");
    shown->Show(done, planned);
  };
  certificate.control = session.subject().launch.drop_in_dir + "/empty_lifecycle";
  const CycleCounts counts{asked.counts,
                           options.most_cycles == 0 ? kGoOn * std::min(asked.counts.back(), kMostCounted) : options.most_cycles};
  carried.status = RunCycles(session.subject(), session.dir(), counts, certificate, reproduce, &carried.run, &progress);
  shown->Clear();
  carried.progressed = {progress.interrupted, progress.done, progress.planned};
  if (carried.status.ok()) FindDefects(&carried.run);
  return carried;
}

}  // namespace cuaudit::harness
