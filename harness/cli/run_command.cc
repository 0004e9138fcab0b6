// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <utility>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"

namespace cuaudit::harness {
namespace {

std::vector<report::LiveRow> LiveTable(const Ledger& ledger) {
  std::array<report::LiveRow, driver::kKindCount> rows;
  for (const Object& object : ledger.objects) {
    if (object.driver_owned || object.part_of_other || object.library_kept || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent)
      continue;
    report::LiveRow& row = rows[static_cast<std::size_t>(object.kind)];
    ++row.acquired;
    if (object.state == State::Released) {
      ++row.released;
    } else if (object.state == State::Orphaned) {
      ++row.orphaned;
    } else {
      ++row.live;
      row.bytes += object.bytes;
    }
  }
  std::vector<report::LiveRow> table;
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    if (rows[kind].acquired == 0) continue;
    rows[kind].kind = std::string(driver::Name(static_cast<driver::Kind>(kind)));
    table.push_back(std::move(rows[kind]));
  }
  return table;
}

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
  return ReadObservation(journal, *ending);
}

}  // namespace

Exit RunCommand(const Options& options) {
  const Result<Session> session = Session::Open(options);
  if (!session.ok()) {
    Say(session.status().message());
    return session.status().exit();
  }
  int interrupted = 0;
  const Result<Observation> seen = RunInForeground(*session, &interrupted);
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
  AddFaultFree(*seen, session->Reproduce(), &sites, &run);
  FindDefects(&run);
  run.live = LiveTable(seen->ledger);
  const bool as_expected = !ending.timed_out && ending.signal == 0 && ending.exit_status == subject.expected_exit;
  if (!as_expected) run.message.bad_end = {how_it_ended, subject.expected_exit};
  run.outcome = !run.findings.empty() ? words::Outcome::Findings : as_expected ? words::Outcome::Clean : words::Outcome::Error;
  SayLeftOut(run);
  return Deliver(run, options);
}

}  // namespace cuaudit::harness
