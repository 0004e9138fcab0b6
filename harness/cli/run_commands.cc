// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/plan/fault.h"
#include "harness/cli/carry_out.h"
#include "harness/cli/commands.h"
#include "harness/cli/progress.h"
#include "harness/cli/recording_report.h"
#include "harness/cli/session.h"
#include "harness/options/report_files.h"
#include "harness/options/sweep_options.h"
#include "harness/process/files.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/report_rows.h"
#include "harness/sweep/sweep_engine.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kRunSteps = 2;  // after the program: its records are read, and judged

// Shows nothing while the program runs: what the user sees then is the program's own output.
Result<Observation> RunInForeground(const Session& session, int* interrupted, Progress* progress) {
  const std::string journal = session.dir().Journal("run.journal");
  Result<Launch> launch = PrepareRun(session.subject(), journal, session.subject().record_capacity, {}, "");
  if (!launch.ok()) return launch.status();
  // A JSON or JUnit report must be alone on stdout.
  const std::vector<Output>& outputs = session.options().outputs;
  launch->stdout_is_ours =
      std::any_of(outputs.begin(), outputs.end(), [](const Output& one) { return one.file.empty() && one.format != Format::Text; });
  const Result<Ending> ending = RunToEnd(*launch, interrupted);
  if (!ending.ok()) return ending.status();
  progress->Step("reading the records", 0, kRunSteps);
  Result<Observation> seen = ReadRun(session.subject(), journal, *ending);
  progress->Clear();
  return seen;
}

// Of a program that failed it is unknown what it would have released.
Status WriteLifetimes(const std::string& table, bool as_expected, const std::string& file) {
  if (file.empty()) return {};
  if (!as_expected) return {Exit::Environment, OptionFlag{"--write-lifetime"}, "nothing was written, because the program failed"};
  const Status written = WriteFile(file, table, Exit::Failure);
  return written.ok() ? written : Status(written.exit(), OptionFlag{"--write-lifetime"}, written.message());
}

}  // namespace

Exit RunCommand(const Options& options) {
  const Result<Lifetimes> lifetimes = options.lifetime.empty() ? Lifetimes() : Lifetimes::Read(options.lifetime);
  const Status usable = lifetimes.ok() ? CheckOutput(options.write_lifetime, "--write-lifetime") : lifetimes.status();
  if (!usable.ok()) {
    Say(usable.message());
    return usable.exit();
  }
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  int interrupted = 0;
  Progress progress(options.progress);
  Result<Observation> seen = RunInForeground(*session, &interrupted, &progress);
  if (!seen.ok()) return Fail(seen.status(), *session);
  // When the program ended by the signal that cuaudit also received, the sender ended both. The run is then neither a crash nor complete,
  // and is reported without being judged.
  const bool as_shells_say =
      seen->ending.exit_status == kSignalled + interrupted && seen->ending.exit_status != session->subject().expected_exit;
  if (interrupted != 0 && (seen->ending.signal == interrupted || as_shells_say)) {
    report::Run run = session->NewReport();
    DescribeRun(*seen, &run);
    run.live = LiveTable(seen->ledger);
    return EndInterrupted({interrupted, 0, 1}, std::move(run), *session);
  }
  const Subject& subject = session->subject();
  const Ending& ending = seen->ending;
  std::string how_it_ended = Describe(ending, subject.deadline_ms);
  const bool refused = seen->journal.header().refused_runtime[0] != '\0';  // then the drop-in ended the program and says why
  if (!refused && (ending.timed_out || ending.signal != 0 || ending.exit_status != 0)) Say("the program " + how_it_ended);
  const Status exercised = CheckExercised(subject, *seen);
  if (!exercised.ok()) return Fail(exercised, *session);

  report::Run run = session->NewReport();
  DescribeRun(*seen, &run);
  AddLeftBehind(ending, Detail::TheyStillAre, &run);
  SiteTexts sites;
  sites.MarkRuntimeOwned(seen->journal, &seen->ledger);
  const bool as_expected = !ending.timed_out && ending.signal == 0 && ending.exit_status == subject.expected_exit;
  JudgeOptions judge;
  judge.nothing_may_stay = as_expected && !options.allow_left;  // a program that failed had no chance to release what it held
  judge.own_orphans_count = options.orphans == "finding";
  progress.Step("judging the records", 1, kRunSteps);
  Groups groups;
  AddFaultFree(*seen, session->Reproduce(), &sites, &groups, &run, judge);
  progress.Clear();
  const std::string table = options.write_lifetime.empty() ? std::string() : LifetimeTable(run);
  for (const std::size_t line : lifetimes->Allow(&run)) {
    Say("warning: --lifetime: " + options.lifetime + ": line " + std::to_string(line) + ": nothing of it was left");
  }
  FindDefects(&run);
  run.live = LiveTable(seen->ledger);
  if (!as_expected) {
    if (const Details failed = LastFailure(*seen); !failed.empty()) how_it_ended += " (" + Words(failed) + ")";
    run.message.bad_end = {how_it_ended, subject.expected_exit};
  }
  run.outcome = !run.findings.empty() ? WithFindings(run) : as_expected ? words::Outcome::Clean : words::Outcome::Error;
  SayLeftOut(run);
  const Exit delivered = Deliver(run, *session);
  return Beside(delivered, WriteLifetimes(table, as_expected, options.write_lifetime));
}

namespace {

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
    const auto wrong = [&text](const std::string& what) { return Status(Exit::Usage, OptionFlag{"--fault"}, "'" + text + "': " + what); };
    faults::Fault fault;
    const faults::ParseError error = faults::ParseFault(text, &fault);
    const bool chosen = error.expected == faults::kExpectsCode && ChooseCode(&fault);
    if (error.expected != nullptr && !chosen) return wrong("column " + std::to_string(error.column) + ": expected " + error.expected);
    if (fault.follows && faults.empty()) return wrong("expected a fault before one that counts from it (#+N)");
    if (fault.site != 0 && options.stacks == 0) return wrong("expected --stacks from 1 with a fault addressed by site");
    faults.push_back({TextOf(fault), chosen});
    if (chosen) Say("--fault: '" + text + "': no error given, taken the likeliest documented one: " + faults.back().text);
  }
  if (faults.size() > faults::kMaxFaults) {
    return Status(Exit::Usage, OptionFlag{"--fault"}, "expected at most " + std::to_string(faults::kMaxFaults) + " faults in one trial");
  }
  return faults;
}

// Says that a finished sweep was started again, so the verdict is the earlier one.
std::string NothingAnew(const WorkDir& dir) {
  return "nothing was run anew: every trial is taken from " + dir.File("trials.jsonl") + "; for new ones choose another --work-dir";
}

}  // namespace

Exit SweepCommand(const Options& options) {
  const Progress::Clock::time_point begun = Progress::Clock::now();
  Result<EngineOptions> sweep = EngineOptionsOf(options);
  if (!sweep.ok()) return Refuse(sweep.status());
  const Result<std::optional<std::chrono::seconds>> budget = ParseBudget(options.budget);
  if (!budget.ok()) return Refuse(budget.status());
  const Status writable = CheckOutput(options.trials, "--trials");
  if (!writable.ok()) return Refuse(writable);
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());

  Spend spend;
  if (budget->has_value()) spend.until = begun + **budget;
  sweep->places_first = spend.until.has_value();
  Progress progress(options.progress);
  CarriedOut carried = CarryOutTrials(*session, *sweep, {}, spend, &progress);
  const Exit delivered = DeliverSweep(*session, &carried);
  if (!carried.nothing_anew) return delivered;
  // JSON and JUnit reports have the same bytes however often a sweep was started, so the line goes to stderr then.
  const std::string nothing_anew = NothingAnew(session->dir());
  const bool read_by_people = std::any_of(options.outputs.begin(), options.outputs.end(),
                                          [](const Output& one) { return one.format == Format::Text && one.file.empty(); });
  if (!read_by_people) Say(nothing_anew);
  const Status said = read_by_people ? WriteAll(STDOUT_FILENO, nothing_anew + "\n", "stdout") : Status();
  return said.ok() ? delivered : said.exit();
}

Exit ReplayCommand(const Options& options) {
  const Result<std::vector<report::Replayed>> faults = ReadFaults(options);
  if (!faults.ok()) return Refuse(faults.status());
  const Result<EngineOptions> sweep = EngineOptionsOf(options);
  if (!sweep.ok()) return Refuse(sweep.status());
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  std::vector<std::string> texts;
  for (const report::Replayed& fault : *faults) texts.push_back(fault.text);
  Progress progress(options.progress);
  CarriedOut carried = CarryOutTrials(*session, *sweep, texts, {}, &progress);
  carried.run.faults = *faults;
  if (carried.progressed.signal != 0) return EndInterrupted(carried.progressed, std::move(carried.run), *session);
  if (!carried.status.ok()) return Fail(carried.status, *session);
  SaySweepWarnings(carried.run);
  return Deliver(std::move(carried.run), *session);
}

Exit CyclesCommand(const Options& options) {
  if (!options.from_journal.empty()) return CyclesOfRecording(options);
  const Result<CyclesAsked> asked = CyclesOf(options);
  if (!asked.ok()) return Refuse(asked.status());
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) return Refuse(session.status());
  Progress progress(options.progress);
  progress.Begin("runs");
  CarriedOut carried = CarryOutCycles(*session, *asked, &progress);
  if (carried.progressed.signal != 0) return EndInterrupted(carried.progressed, std::move(carried.run), *session);
  if (!carried.status.ok()) return Fail(carried.status, *session);
  SayLeftOut(carried.run);
  return Deliver(std::move(carried.run), *session);
}

}  // namespace cuaudit::harness
