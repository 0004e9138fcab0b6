// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "faults/plan/fault.h"
#include "harness/cli/commands.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/sweep/make_runner.h"
#include "harness/sweep/replay.h"
#include "harness/sweep/sweep_digest.h"
#include "harness/sweep/sweep_engine.h"
#include "reports/host_notes.h"

namespace cuaudit::harness {
namespace {

void SayWarnings(const report::Run& run) {
  for (const auto& [reason, count] : run.totals.skipped) {
    if (reason == "unmodelled calls") {
      Say("warning: " + std::to_string(count) + " calls are unknown to the simulated driver and answered NOT_SUPPORTED");
    } else if (reason.starts_with("host probes")) {
      Say("warning: " + reason);
    }
  }
}

Status CheckFaults(const std::vector<std::string>& texts, std::uint64_t stacks) {
  for (const std::string& text : texts) {
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    if (error.expected != nullptr) {
      return {Exit::Usage, "--fault: '" + text + "': column " + std::to_string(error.column) + ": expected " + error.expected};
    }
    if (fault.follows && &text == &texts.front())
      return {Exit::Usage, "--fault: '" + text + "': expected a fault before one that counts from it (#+N)"};
    if (fault.site != 0 && stacks == 0)
      return {Exit::Usage, "--fault: '" + text + "': expected --stacks from 1 with a fault addressed by site"};
  }
  if (texts.size() > faults::kMaxFaults) {
    return {Exit::Usage, "--fault: expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial"};
  }
  return {};
}

// "97" or "97.5": tenths of a percent.
Result<std::uint64_t> ParsePercent(const std::string& text) {
  const std::string wrong = "--coverage-at-least: '" + text + "': expected a percentage from 0 to 100, with at most one decimal";
  const std::size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  const std::string tenth = point == std::string::npos ? "0" : text.substr(point + 1);
  const auto digits = [](const std::string& part) { return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos; };
  if (!digits(whole) || !digits(tenth) || whole.size() > 3 || tenth.size() > 1) return Status(Exit::Usage, wrong);
  const std::uint64_t value = std::stoull(whole) * 10 + std::stoull(tenth);
  if (value > 1000) return Status(Exit::Usage, wrong);
  return value;
}

Result<std::vector<Benign>> ParseBenignList(const std::vector<std::string>& texts) {
  std::vector<Benign> declared;
  for (const std::string& text : texts) {
    Result<Benign> benign = ParseBenign(text);
    if (!benign.ok()) return benign.status();
    declared.push_back(std::move(*benign));
  }
  return declared;
}

// What the command line says about a sweep, checked before anything runs.
Result<SweepOptions> SweepOptionsOf(const Options& options) {
  SweepOptions sweep;
  sweep.plan.hows = SplitCommas(options.how);
  sweep.plan.all_codes = options.codes == "all";
  sweep.plan.calls = options.call;
  sweep.plan.limit = options.limit;
  sweep.plan.prune = options.no_prune ? Prune::None : options.prune == "all" ? Prune::All : Prune::Second;
  sweep.depth = static_cast<int>(options.depth);
  sweep.shrink = !options.no_shrink;
  sweep.judge.abandoned_is_leak = options.abandoned_is_leak;
  sweep.judge.exit_is_said = options.strict_exit;
  Result<std::vector<Benign>> benign = ParseBenignList(options.benign);
  if (!benign.ok()) return benign.status();
  sweep.benign = std::move(*benign);
  if (!options.coverage_at_least.empty()) {
    const Result<std::uint64_t> tenths = ParsePercent(options.coverage_at_least);
    if (!tenths.ok()) return tenths.status();
    sweep.coverage_at_least = *tenths;
  }
  Status usable = CheckPlanOptions(sweep.plan);
  if (!usable.ok()) return usable;
  return sweep;
}

// A sweep that goes on in its directory does so beside the fault-free runs it began with, where others would differ from them.
Result<Rehearsal> RehearseForSweep(const Session& session, const SweepOptions& sweep, int* interrupted) {
  std::optional<Rehearsal> kept = KeptRehearsal(session.subject(), session.dir());
  if (kept && HoldsPlanOf(session.dir(), sweep, SubjectHash(session.subject(), *kept, sweep.judge))) return std::move(*kept);
  kept.reset();
  return Rehearse(session.subject(), session.dir(), 2, interrupted);
}

// A finished sweep was begun again: its verdict is the earlier one.
std::string NothingAnew(const WorkDir& dir) {
  return "nothing was run anew: every trial is taken from " + dir.File("trials.jsonl") + "; for new ones choose another --work-dir";
}

}  // namespace

Exit SweepCommand(const Options& options) {
  const Result<SweepOptions> sweep = SweepOptionsOf(options);
  if (!sweep.ok()) {
    Say(sweep.status().message());
    return sweep.status().exit();
  }
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) {
    Say(session.status().message());
    return session.status().exit();
  }

  report::Run run = session->NewReport();
  int interrupted = 0;
  Status status;
  std::string nothing_anew;
  Result<Rehearsal> rehearsal = RehearseForSweep(*session, *sweep, &interrupted);
  if (!rehearsal.ok()) return EndBy(interrupted, rehearsal.status(), *session, "sweep");
  {
    // From here on, so that the rehearsals' own pool saw the signals as they were.
    const Subject trials = SubjectOfTrials(session->subject(), *rehearsal);
    const SpawnOptions resources{session->jobs(), options.keep, TrialCapacity(trials, rehearsal->run)};
    const std::unique_ptr<Runner> runner = MakeRunner(options.isolation, trials, session->dir(), resources, *rehearsal);
    const std::uint64_t subject = SubjectHash(session->subject(), *rehearsal, sweep->judge);
    SweepEngine engine(runner.get(), &session->dir(), *sweep, session->Reproduce());
    status = engine.Prepare(std::move(*rehearsal), subject);
    Progress progress;
    if (status.ok()) {
      if (engine.rehearsal().drifting) Say("warning: two fault-free runs differ at " + engine.rehearsal().drift);
      if (engine.resumed() != 0)
        Say("going on: " + std::to_string(engine.resumed()) + " of " + std::to_string(engine.total()) + " trials are done");
      if (engine.Finished() && engine.resumed() != 0) nothing_anew = NothingAnew(session->dir());
    }
    while (status.ok() && !engine.Finished()) {
      progress.Show(engine.done(), engine.total());
      status = engine.Step();
    }
    progress.Clear();
    interrupted = runner->interrupted();
    if (status.ok()) engine.Report(&run);
  }
  if (!status.ok()) return EndBy(interrupted, status, *session, "sweep");
  SayWarnings(run);
  const std::string shown = report::HostNotes(run);
  Say(std::to_string(run.totals.trials) + " trials, " + std::to_string(run.totals.fired) + " fired, " +
      std::to_string(run.findings.size()) + (run.findings.size() == 1 ? " finding" : " findings") +
      (run.coverage->pruned == 0 ? "" : ", " + std::to_string(run.coverage->pruned) + " pruned as equal (--no-prune tries them)") +
      (shown.empty() ? "" : ", " + shown));
  const Exit delivered = Deliver(run, options);
  if (nothing_anew.empty()) return delivered;
  // A report for programs has the same bytes however often a sweep was begun.
  const bool read_by_people = options.output.empty() && options.format == "text";
  if (!read_by_people) Say(nothing_anew);
  const Status said = read_by_people ? WriteAll(STDOUT_FILENO, nothing_anew + "\n", "stdout") : Status();
  return said.ok() ? delivered : said.exit();
}

Exit ReplayCommand(const Options& options) {
  Status usable = CheckFaults(options.fault, options.stacks);
  if (!usable.ok()) {
    Say(usable.message());
    return usable.exit();
  }
  const Result<std::vector<Benign>> benign = ParseBenignList(options.benign);
  if (!benign.ok()) {
    Say(benign.status().message());
    return benign.status().exit();
  }
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) {
    Say(session.status().message());
    return session.status().exit();
  }
  JudgeOptions judge;
  judge.abandoned_is_leak = options.abandoned_is_leak;
  judge.exit_is_said = options.strict_exit;
  report::Run run = session->NewReport();
  int interrupted = 0;
  Status status = Replay(session->subject(), session->dir(), options.fault, judge, *benign, session->Reproduce(), &run, &interrupted);
  if (!status.ok()) return EndBy(interrupted, status, *session, "replay");
  SayWarnings(run);
  return Deliver(run, options);
}

}  // namespace cuaudit::harness
