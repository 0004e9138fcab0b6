// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/live_table.h"
#include "harness/cli/session.h"
#include "harness/options/report_files.h"
#include "harness/process/files.h"
#include "harness/sweep/findings/lifetimes.h"

namespace cuaudit::harness {
namespace {

Result<Observation> RunInForeground(const Session& session, int* interrupted) {
  const std::string journal = session.dir().Journal("run.journal");
  Result<Launch> launch = PrepareRun(session.subject(), journal, session.subject().record_capacity, {}, "");
  if (!launch.ok()) return launch.status();
  // A JSON or JUnit report must be alone on stdout.
  const std::vector<Output>& outputs = session.options().outputs;
  launch->stdout_is_ours =
      std::any_of(outputs.begin(), outputs.end(), [](const Output& one) { return one.file.empty() && one.format != Format::Text; });
  const Result<Ending> ending = RunToEnd(*launch, interrupted);
  if (!ending.ok()) return ending.status();
  return ReadRun(session.subject(), journal, *ending);
}

// Of a program that failed it is unknown what it would have released.
Status WriteLifetimes(const std::string& table, bool as_expected, const std::string& file) {
  if (file.empty()) return {};
  if (!as_expected) return {Exit::Environment, "--write-lifetime: nothing was written, because the program failed"};
  const Status written = WriteFile(file, table, Exit::Failure);
  return written.ok() ? written : Status(written.exit(), "--write-lifetime: " + written.message());
}

words::Outcome OutcomeOf(const report::Run& run, bool as_expected) {
  const auto stayed = [](const report::Finding& finding) { return finding.rule == words::Rule::LeftAtExit; };
  if (!std::all_of(run.findings.begin(), run.findings.end(), stayed)) return words::Outcome::Findings;
  if (!run.findings.empty()) return words::Outcome::Left;
  return as_expected ? words::Outcome::Clean : words::Outcome::Error;
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
  Result<Observation> seen = RunInForeground(*session, &interrupted);
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
  const std::string how_it_ended = Describe(ending, subject.deadline_ms);
  const bool refused = seen->journal.header().refused_runtime[0] != '\0';  // then the drop-in ended the program and says why
  if (!refused && (ending.timed_out || ending.signal != 0 || ending.exit_status != 0)) Say("the program " + how_it_ended);
  const Status exercised = CheckExercised(subject, *seen);
  if (!exercised.ok()) return Fail(exercised, *session);

  report::Run run = session->NewReport();
  DescribeRun(*seen, &run);
  AddLeftBehind(ending, "they still are", &run);
  SiteTexts sites;
  sites.MarkRuntimeOwned(seen->journal, &seen->ledger);
  const bool as_expected = !ending.timed_out && ending.signal == 0 && ending.exit_status == subject.expected_exit;
  JudgeOptions judge;
  judge.nothing_may_stay = as_expected && !options.allow_left;  // a program that failed had no chance to release what it held
  judge.own_orphans_count = options.orphans == "finding";
  AddFaultFree(*seen, session->Reproduce(), &sites, &run, judge);
  const std::string table = options.write_lifetime.empty() ? std::string() : LifetimeTable(run);
  for (const std::size_t line : lifetimes->Allow(&run)) {
    Say("warning: --lifetime: " + options.lifetime + ": line " + std::to_string(line) + ": nothing of it was left");
  }
  FindDefects(&run);
  run.live = LiveTable(seen->ledger);
  if (!as_expected) run.message.bad_end = {how_it_ended, subject.expected_exit};
  run.outcome = OutcomeOf(run, as_expected);
  SayLeftOut(run);
  const Exit delivered = Deliver(run, *session);
  return Beside(delivered, WriteLifetimes(table, as_expected, options.write_lifetime));
}

}  // namespace cuaudit::harness
