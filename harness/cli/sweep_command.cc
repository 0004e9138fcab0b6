// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"
#include "harness/cli/commands.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/options/sweep_settings.h"
#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/replay.h"
#include "harness/sweep/runners/make_runner.h"
#include "harness/sweep/sweep_digest.h"
#include "harness/sweep/sweep_engine.h"
#include "reports/defect_words.h"
#include "reports/host_notes.h"

namespace cuaudit::harness {
namespace {

void SayWarnings(const report::Run& run) {
  const report::Totals& totals = run.totals;
  for (const Reason why : {Reason::ProbesSanitizer, Reason::ProbesDescriptors, Reason::ProbesStopped, Reason::ProbesNotLoaded}) {
    if (totals.skipped.contains({why})) Say("warning: " + Words(why));
  }
  const auto unmodelled = totals.skipped.find({Reason::Unmodelled});
  if (unmodelled == totals.skipped.end()) return;
  Say("warning: " + std::to_string(unmodelled->second) + " calls are unknown to the simulated driver and answered NOT_SUPPORTED");
}

// Adds the likeliest documented error to "cuMemAlloc#2". Answers false when the call has none.
bool ChooseCode(faults::Fault* fault) {
  const faults::HostFaultRow* const host = faults::HostFaultOf(fault->base);
  if (host != nullptr) fault->how = host->how;
  fault->code = host != nullptr ? CUDA_ERROR_OUT_OF_MEMORY : driver::DefaultCode(fault->base);
  return fault->code != CUDA_SUCCESS;
}

Result<std::vector<report::Replayed>> ReadFaults(const Options& options) {
  std::vector<report::Replayed> faults;
  for (const std::string& text : options.fault) {
    const std::string given = "--fault: '" + text + "': ";
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    const bool chosen = error.expected == faults::kExpectsCode && ChooseCode(&fault);
    if (error.expected != nullptr && !chosen) {
      return Status(Exit::Usage, given + "column " + std::to_string(error.column) + ": expected " + error.expected);
    }
    if (fault.follows && faults.empty()) return Status(Exit::Usage, given + "expected a fault before one that counts from it (#+N)");
    if (fault.site != 0 && options.stacks == 0)
      return Status(Exit::Usage, given + "expected --stacks from 1 with a fault addressed by site");
    faults.push_back({chosen ? TextOf(fault) : text, chosen});
    if (chosen) Say(given + "no error given, taken the likeliest documented one: " + faults.back().text);
  }
  if (faults.size() > faults::kMaxFaults) {
    return Status(Exit::Usage, "--fault: expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial");
  }
  return faults;
}

// A sweep that continues in its directory uses the fault-free runs that it began with, when new ones could differ.
Result<Rehearsal> RehearseForSweep(const Session& session, const SweepOptions& sweep, int* interrupted) {
  std::optional<Rehearsal> kept = KeptRehearsal(session.subject(), session.dir());
  if (kept && HoldsPlanOf(session.dir(), sweep, SubjectHash(session.subject(), *kept, sweep.judge))) return std::move(*kept);
  kept.reset();
  return Rehearse(session.subject(), session.dir(), 2, interrupted);
}

// Says that a finished sweep was started again, so the verdict is the earlier one.
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
  if (!rehearsal.ok()) {
    return interrupted != 0 ? EndInterrupted({interrupted}, std::move(run), *session) : Fail(rehearsal.status(), *session);
  }
  Progressed progressed;
  {
    const Subject trials = SubjectOfTrials(session->subject(), *rehearsal);
    const SpawnOptions resources{session->jobs(), options.keep, TrialCapacity(trials, rehearsal->run)};
    const Isolation wished = Named<Isolation>(options.isolation).value_or(Isolation::Unknown);  // auto
    std::unique_ptr<Runner> runner = MakeRunner(wished, trials, session->dir(), resources, *rehearsal);
    const std::uint64_t subject = SubjectHash(session->subject(), *rehearsal, sweep->judge);
    SiteTexts sites;
    SweepEngine engine(runner.get(), &session->dir(), *sweep, session->Reproduce(), &sites);
    status = engine.Prepare(std::move(*rehearsal), subject);
    Progress progress;
    if (status.ok()) {
      if (engine.rehearsal().drifting) Say("warning: two fault-free runs differ at " + engine.rehearsal().drift);
      if (engine.resumed() != 0)
        Say("going on: " + std::to_string(engine.resumed()) + " of " + std::to_string(engine.total()) + " trials are done");
      if (engine.Finished() && engine.resumed() != 0) nothing_anew = NothingAnew(session->dir());
    }
    bool told = false;
    while (status.ok() && !engine.Finished()) {
      if (!told && engine.first_found() != nullptr) {
        told = true;
        progress.Clear();
        Say(FirstFound(*engine.first_found(), engine.done(), engine.total()));
      }
      progress.Show(engine.done(), engine.total());
      status = engine.Step();
    }
    progress.Clear();
    progressed.signal = status.ok() ? 0 : runner->interrupted();
    runner.reset();  // ends all running processes
    if (status.ok() || progressed.signal != 0) engine.Report(&run);
    progressed.done = run.totals.trials;
    progressed.planned = engine.trials();
    progressed.more = engine.plans_more();
  }
  if (progressed.signal != 0) return EndInterrupted(progressed, std::move(run), *session);
  if (!status.ok()) return Fail(status, *session);
  SayWarnings(run);
  const std::string shown = report::HostNotes(run);
  Say(std::to_string(run.totals.trials) + " trials, " + std::to_string(run.totals.fired) + " fired, " + report::DefectCount(run) +
      (run.coverage->pruned == 0 ? "" : ", " + std::to_string(run.coverage->pruned) + " pruned as equal (--no-prune tries them)") +
      (shown.empty() ? "" : ", " + shown));
  const Exit delivered = Deliver(run, options);
  if (nothing_anew.empty()) return delivered;
  // JSON and JUnit reports have the same bytes however often a sweep was started, so the line goes to stderr then.
  const bool read_by_people = std::any_of(options.outputs.begin(), options.outputs.end(),
                                          [](const Output& one) { return one.format == Format::Text && one.file.empty(); });
  if (!read_by_people) Say(nothing_anew);
  const Status said = read_by_people ? WriteAll(STDOUT_FILENO, nothing_anew + "\n", "stdout") : Status();
  return said.ok() ? delivered : said.exit();
}

Exit ReplayCommand(const Options& options) {
  const Result<std::vector<report::Replayed>> faults = ReadFaults(options);
  if (!faults.ok()) {
    Say(faults.status().message());
    return faults.status().exit();
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
  run.faults = *faults;
  std::vector<std::string> texts;
  for (const report::Replayed& fault : *faults) texts.push_back(fault.text);
  int interrupted = 0;
  Status status = Replay(session->subject(), session->dir(), texts, judge, *benign, session->Reproduce(), &run, &interrupted);
  if (interrupted != 0) return EndInterrupted({interrupted, 0, 1}, std::move(run), *session);
  if (!status.ok()) return Fail(status, *session);
  SayWarnings(run);
  return Deliver(run, options);
}

}  // namespace cuaudit::harness
