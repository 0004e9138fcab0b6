// SPDX-License-Identifier: MIT
#include <unistd.h>

#include "faults/plan/fault.h"
#include "harness/cli/commands.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/sweep/spawn_runner.h"
#include "harness/sweep/sweep_engine.h"

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

Status CheckFaults(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    if (error.expected != nullptr) {
      return {Exit::Usage, "--fault: '" + text + "': column " + std::to_string(error.column) + ": expected " + error.expected};
    }
  }
  if (texts.size() > faults::kMaxFaults) {
    return {Exit::Usage, "--fault: expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial"};
  }
  return {};
}

}  // namespace

Exit SweepCommand(const Options& options) {
  SweepOptions sweep;
  sweep.plan.hows = SplitCommas(options.how);
  sweep.plan.all_codes = options.codes == "all";
  sweep.plan.calls = options.call;
  sweep.plan.limit = options.limit;
  sweep.plan.prune = !options.no_prune;
  sweep.depth = static_cast<int>(options.depth);
  sweep.judge.abandoned_is_leak = options.abandoned_is_leak;
  Status usable = CheckPlanOptions(sweep.plan);
  if (!usable.ok()) {
    Say(usable.message());
    return usable.exit();
  }
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) {
    Say(session.status().message());
    return session.status().exit();
  }

  report::Run run = session->NewReport();
  int interrupted = 0;
  Status status;
  Result<Rehearsal> rehearsal = Rehearse(session->subject(), session->dir(), 2, &interrupted);
  if (!rehearsal.ok()) return EndBy(interrupted, rehearsal.status(), *session, "sweep");
  {
    // From here on, so that the rehearsals' own pool saw the signals as they were.
    SpawnRunner runner(session->subject(), session->dir(),
                       {session->jobs(), options.keep, TrialCapacity(session->subject(), rehearsal->run)});
    const std::uint64_t subject = SubjectHash(session->subject(), *rehearsal, sweep.judge);
    SweepEngine engine(&runner, &session->dir(), sweep, session->Reproduce());
    status = engine.Prepare(std::move(*rehearsal), subject);
    Progress progress;
    if (status.ok()) {
      if (engine.rehearsal().drifting) Say("warning: two fault-free runs differ at " + engine.rehearsal().drift);
      if (engine.resumed() != 0)
        Say("going on: " + std::to_string(engine.resumed()) + " of " + std::to_string(engine.total()) + " trials are done");
    }
    while (status.ok() && !engine.Finished()) {
      progress.Show(engine.done(), engine.total());
      status = engine.Step();
    }
    progress.Clear();
    interrupted = runner.interrupted();
    if (status.ok()) engine.Report(&run);
  }
  if (!status.ok()) return EndBy(interrupted, status, *session, "sweep");
  SayWarnings(run);
  Say(std::to_string(run.totals.trials) + " trials, " + std::to_string(run.totals.fired) + " fired, " +
      std::to_string(run.findings.size()) + (run.findings.size() == 1 ? " finding" : " findings"));
  return Deliver(run, options);
}

Exit ReplayCommand(const Options& options) {
  Status usable = CheckFaults(options.fault);
  if (!usable.ok()) {
    Say(usable.message());
    return usable.exit();
  }
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) {
    Say(session.status().message());
    return session.status().exit();
  }
  JudgeOptions judge;
  judge.abandoned_is_leak = options.abandoned_is_leak;
  report::Run run = session->NewReport();
  int interrupted = 0;
  Status status = Replay(session->subject(), session->dir(), options.fault, judge, session->Reproduce(), &run, &interrupted);
  if (!status.ok()) return EndBy(interrupted, status, *session, "replay");
  SayWarnings(run);
  return Deliver(run, options);
}

}  // namespace cuaudit::harness
