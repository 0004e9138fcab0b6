// SPDX-License-Identifier: MIT
#include "harness/sweep/run/observation.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include "faults/driver/foreign_runtime.h"
#include "faults/driver/result.h"
#include "harness/process/shell.h"
#include "harness/recording/recording.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/host/driver_owned.h"
#include "reports/frames.h"

namespace cuaudit::harness {

Result<Observation> ReadObservation(const std::string& journal, const Ending& ending) {
  Result<SparseFile> file = SparseFile::Open(journal);
  if (!file.ok()) return file.status();
  Observation seen;
  seen.path = journal;
  seen.file = std::move(*file);
  seen.ending = ending;
  if (const char* const wrong = seen.journal.Open(seen.file.data(), seen.file.size())) return Status(Exit::Usage, journal + ": " + wrong);
  if (IsRecording(seen.journal)) {
    seen.recording = std::make_shared<const Recording>(ReadRecording(seen.journal));
    seen.journal = faults::JournalView::Join(&seen.journal.header(), seen.recording->records, seen.journal);
  }
  seen.memo = std::make_shared<faults::KeyMemo>();
  seen.journal.Remember(seen.memo.get());
  seen.ledger = Fold(seen.journal.records());
  MarkDriverOwned(seen.journal, &seen.ledger);
  if (seen.recording != nullptr && !seen.recording->WholeOfWhatLasts()) DropWhatNeedsTheBeginning(&seen.ledger);
  if (seen.recording != nullptr) DropWhatNeedsTheEnd(&seen.ledger);
  return seen;
}

Result<Observation> ReadRun(const Subject& subject, const std::string& journal, const Ending& ending) {
  Result<Observation> seen = ReadObservation(journal, ending);
  if (seen.ok() || !IsDamaged(seen.status())) return seen;
  return Status(Exit::Environment, ShellQuote(subject.command.front()) +
                                       ": the program removed or overwrote the journal of its audit: " + seen.status().message());
}

faults::JournalOptions OptionsOf(const Subject& subject, std::size_t record_capacity) {
  faults::JournalOptions options;
  options.record_capacity = record_capacity;
  options.stack_depth = subject.launch.stack_depth;
  options.stacks_of_objects_only = subject.launch.stacks_of_objects_only;
  return options;
}

Result<Launch> PrepareRun(const Subject& subject, const std::string& journal, std::size_t record_capacity,
                          std::span<const std::string> faults, const std::string& output, const std::string& more) {
  Status enters = CheckDropInPath(subject.launch.drop_in_dir);
  if (!enters.ok()) return enters;
  if (const char* const wrong = faults::CreateJournal(journal.c_str(), OptionsOf(subject, record_capacity))) {
    return Status(Exit::Failure, journal + ": " + wrong + ": " + SystemWords(errno));
  }
  Launch launch;
  launch.path = subject.program.path;
  launch.arguments = subject.command;
  launch.directory = subject.directory;
  std::string orders = OptionsText(subject.launch, journal, faults);
  if (!more.empty()) orders += ";" + more;
  launch.environment = MakeEnvironment(subject.launch, subject.program.asan_library, orders, subject.environment);
  launch.foreground = output.empty();
  launch.output = output;
  launch.deadline_ms = subject.deadline_ms;
  return launch;
}

std::string Describe(const Ending& ending, std::uint64_t deadline_ms) {
  if (ending.timed_out) return Words({Detail::NotInTime, {std::to_string(deadline_ms)}});
  if (ending.signal != 0) return Words({Detail::DiedOfSignal, {std::to_string(ending.signal), strsignal(ending.signal)}});
  return Words({Detail::Exited, {std::to_string(ending.exit_status)}});
}

Details WhyDropped(const Observation& run) {
  if ((run.flags() & faults::kNoSpace) != 0) return {{Detail::NoSpaceIn, {run.path.substr(0, run.path.rfind('/'))}}};
  Details why = {{Detail::Overflowed, {std::to_string(run.journal.header().record_capacity)}}};
  if (run.ledger.facts.of_host > run.journal.records().size() / 2) why.push_back({Detail::OrFewerRecords});
  return why;
}

namespace {

// Explains that the drop-in ended the program because NVIDIA's CUDA runtime met the simulated driver.
std::string RefusedRuntime(const Subject& subject, const Observation& run) {
  const char(&object)[256] = run.journal.header().refused_runtime;
  if (object[0] == '\0') return {};
  char text[2048];
  driver::ExplainForeignRuntime(std::string(object, strnlen(object, sizeof(object))).c_str(), subject.launch.cudart_dir.c_str(), text,
                                sizeof(text));
  return text;
}

}  // namespace

Status CheckExercised(const Subject& subject, const Observation& run) {
  const std::string name = ShellQuote(subject.command.front());
  const std::string refused = RefusedRuntime(subject, run);
  if (!refused.empty()) return Status::NotExercised(name + ": " + refused);
  if ((run.flags() & faults::kRecordsDropped) != 0) {
    return {Exit::Failure, name + ": " + Words(WhyDropped(run))};
  }
  if (!run.ledger.facts.calls.empty()) {
    // Host probes that nobody asked for may be missing; the report says so.
    if (subject.launch.host_probes != HostProbes::Heap || run.ledger.host_unseen == 0) return {};
    return Status::NotExercised(name + ": " + Words({Detail::ProbesNotUp}));
  }
  Details why = {{run.entered() ? Detail::DriverNotCalled : Detail::NotEntered}};
  if (!run.entered() && subject.program.is_static) why.push_back({Detail::LinkedStatically});
  return Status::NotExercised(name + ": " + Words(why));
}

Details LastFailure(const Observation& run) {
  // Many programs probe: the first calls that fail tell least.
  const faults::Record* last = nullptr;
  std::size_t failed = 0;
  for (const std::uint32_t index : run.ledger.facts.calls) {
    const faults::Record& call = run.journal.records()[index];
    if (call.end == 0 || call.result == CUDA_SUCCESS || call.result == CUDA_ERROR_NOT_READY) continue;
    ++failed;
    if (last == nullptr || call.end > last->end) last = &call;
  }
  if (last == nullptr) return {};
  SiteTexts texts;
  const PlaceText& place = texts.Text(run.journal, SiteOf(*last));
  const std::string code(driver::ShortResultName(static_cast<CUresult>(last->result)));
  Details failure = {failed == 1 ? words::DetailPart{Detail::OnlyFailure, {place->call, code}}
                                 : words::DetailPart{Detail::LastFailure, {std::to_string(failed), place->call, code}}};
  if (const std::string at = report::DescribeOrigin(place->stack); !at.empty()) failure.push_back({Detail::AtPlace, {at}});
  return failure;
}

Status CheckFaultFree(const Subject& subject, const Observation& run) {
  const bool as_expected = !run.ending.timed_out && run.ending.signal == 0 && run.ending.exit_status == subject.expected_exit;
  const bool forbidden = run.ending.signal == SIGSYS && subject.launch.host_probes != HostProbes::None;
  if (!as_expected && run.journal.header().refused_runtime[0] == '\0') {
    Details why = {{Detail::WithoutFault},
                   {Detail::EndedOtherwise, {Describe(run.ending, subject.deadline_ms), std::to_string(subject.expected_exit)}},
                   {Detail::InputWasEmpty}};
    if (forbidden) why.push_back({Detail::SandboxForbids});
    for (words::DetailPart& part : LastFailure(run)) why.push_back(std::move(part));
    return {Exit::Environment, ShellQuote(subject.command.front()) + ": " + Words(why)};
  }
  return CheckExercised(subject, run);
}

}  // namespace cuaudit::harness
