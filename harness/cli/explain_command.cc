// SPDX-License-Identifier: MIT
#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "faults/driver/result.h"
#include "faults/driver/shape.h"
#include "harness/cli/commands.h"
#include "harness/cli/progress.h"
#include "harness/cli/recording_report.h"
#include "harness/cli/session.h"
#include "harness/ledger/host_deed.h"
#include "harness/ledger/rules.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"
#include "harness/verdict/verdict.h"
#include "reports/defect_words.h"
#include "reports/frames.h"
#include "reports/message.h"
#include "reports/text_page.h"

namespace cuaudit::harness {

// Explains a word of a report: the id of an outcome, a verdict, a rule, a reason or a change.

namespace {

void Add(std::string_view id, std::string_view what, std::string_view title, std::string_view explanation, std::string_view advice,
         std::string* page) {
  page->append(id).append(" (").append(what).append("): ").append(title).append("\n");
  if (!explanation.empty()) page->append("  ").append(explanation).append("\n");
  if (!advice.empty()) page->append("  What to do: ").append(advice).append("\n");
}

// The same of a table whose rows have all of it.
template <typename E>
void AddRow(const std::string& word, std::string_view what, std::string* page) {
  const std::optional<E> one = Named<E>(word);
  if (one) Add(word, what, Row(*one).title, Row(*one).explanation, Row(*one).advice, page);
}

// Empty: no report has such a word.
std::string PageOf(const std::string& word) {
  std::string page;
  AddRow<words::Outcome>(word, "outcome", &page);
  const std::optional<Rule> rule = Named<Rule>(word);
  AddRow<Rule>(word, rule && Row(*rule).level == Level::Finding ? "rule, a finding" : "rule, a note", &page);
  AddRow<Verdict>(word, "verdict", &page);
  if (Named<words::Change>(word) != words::Change::None) AddRow<words::Change>(word, "said by compare", &page);
  if (const std::optional<Missed> missed = Named<Missed>(word); missed && *missed != Missed::Nothing) {
    Add(word, "why a trial proves nothing", Row(*missed).coverage, {}, Row(*missed).advice, &page);
  }
  if (const std::optional<Reason> reason = Named<Reason>(word)) {
    const ReasonRow& row = Row(*reason);
    const std::string about = std::string(kReasonGroups[static_cast<std::size_t>(row.group)]) + ".";
    Add(word, "reason", Filled(row.text, "[" + std::string(row.of) + "]"), about, row.advice, &page);
  }
  return page;
}

// `word` is a name that stands in a report: of a rule, an outcome, a verdict, a reason or a change.
Exit ExplainWord(const std::string& word) {
  const std::string page = PageOf(word);
  if (!page.empty()) return Print(page);
  return Refuse({Exit::Usage, OptionFlag{"--rule"},
                 "'" + word +
                     "': expected an outcome, a verdict, a rule, a reason or a change: cuaudit list outcomes, verdicts, rules, "
                     "missed, reasons or changes"});
}

using report::Page;

std::string_view DriverName(faults::DriverKind kind) {
  if (kind == faults::DriverKind::None) return "none was reached";
  return kind <= faults::DriverKind::Simulated ? DriverInWords(kind) : "unknown";
}

// In the order of faults::MarkKind, faults::ProcessEvent and State.
constexpr std::string_view kMarks[] = {"cycle begins", "cycle ends", "phase", "report", "output", "block handed out", "block taken back"};
constexpr std::string_view kProcessEvents[] = {"process starts", "process forked", "process reached exit",
                                               "CUDA runtime gives back what it holds", "a thread still runs"};
constexpr std::string_view kStates[] = {"live", "released", "orphaned", "release refused"};

// A file may hold any number.
template <std::size_t N>
std::string_view At(const std::string_view (&words)[N], std::size_t at, std::string_view otherwise) {
  return at < N ? words[at] : otherwise;
}

std::string_view PhaseName(faults::Phase phase) {
  return phase <= faults::Phase::Unwind ? faults::Name(phase) : std::string_view("unknown phase");
}

void AddHeader(const faults::JournalView& journal, Page* page) {
  const faults::JournalHeader& header = journal.header();
  const auto text = [](const char* field, std::size_t size) { return std::string_view(field, strnlen(field, size)); };
  const int version = header.driver_version.load();
  const std::uint32_t flags = header.flags.load();
  const std::string of = version == 0 ? std::string() : fmt::format(", CUDA {}.{}", version / 1000, version % 1000 / 10);
  page->Line("driver    {}{}", DriverName(header.driver_kind.load()), of);
  if (header.driver_path[0] != '\0') page->Line("path      {}", text(header.driver_path, sizeof(header.driver_path)));
  if (header.device_name[0] != '\0') page->Line("device    {}", text(header.device_name, sizeof(header.device_name)));
  if (header.world[0] != '\0') page->Line("world     {}", text(header.world, sizeof(header.world)));
  if (const auto kernels = KernelsOf(journal)) page->Line("kernels   {}", report::Describe(*kernels));
  page->Line("records   {} of {}", journal.records().size(), header.record_capacity);
  page->Line("modules   {}, stacks {} of up to {} frames", header.next_module.load(), header.next_stack.load(), header.stack_depth.load());
  if ((flags & faults::kRecordsDropped) != 0)
    page->Line("note      {} records were dropped: the capacity was reached", header.dropped.load());
  if ((flags & faults::kStacksDropped) != 0) page->Line("note      call stacks were dropped: their table was full");
  if ((flags & faults::kModulesDropped) != 0) page->Line("note      modules were dropped: their table was full");
  if ((flags & faults::kHostProbesSkipped) != 0) page->Line("note      host probes stayed out: a sanitizer is in the process");
  if ((flags & faults::kHeapNotSeen) != 0) page->Line("note      malloc is the program's own: no heap blocks");
  if (journal.truncated()) page->Line("note      the file is cut: what follows is what is left of it");
  page->Line("");
}

std::string Arguments(const faults::Record& record) {
  const driver::Shape& shape = driver::ShapeOf(CallOf(record));
  std::string text;
  for (std::size_t i = 0; i < std::min(shape.count, faults::kRecordArguments); ++i) {
    text += fmt::format("{}{}{:#x}", i == 0 ? "" : ", ", shape.parameter[i].output ? "-> " : "", record.argument[i]);
  }
  return text;
}

std::string CallLine(const faults::Record& record) {
  if (record.call >= driver::kCallCount) return fmt::format("unknown call {}", record.call);
  const auto result = static_cast<CUresult>(record.result);
  std::string line = fmt::format("{}({})", driver::Name(CallOf(record)), Arguments(record));
  if (record.end == 0) {
    line += " did not return";
  } else {
    const std::string_view name = driver::ShortResultName(result);
    line += " = " + (name.empty() ? std::to_string(record.result) : std::string(name));
  }
  if ((record.flags & faults::kInjected) != 0) line += fmt::format(" [injected by fault {}]", record.fault);
  if ((record.flags & faults::kUnmodelled) != 0) line += " [unmodelled]";
  if ((record.flags & faults::kNested) != 0) line += " [nested]";
  return line;
}

std::string MisuseLine(const faults::Record& record) {
  if (record.call >= driver::kMisuseRuleCount || record.argument[0] >= driver::kKindCount)
    return fmt::format("unknown misuse {}", record.call);
  std::string line =
      fmt::format("misuse {}: {} {:#x}, {} bytes, by call {}", driver::Name(static_cast<driver::MisuseRule>(record.call)),
                  driver::Name(static_cast<driver::Kind>(record.argument[0])), record.argument[1], record.argument[2], record.argument[3]);
  if (record.argument[4] != 0) line += fmt::format(", collides with call {}", record.argument[4]);
  return line;
}

// host_calls.def says what the arguments are. A descriptor is recorded as its number plus one.
std::string HostLine(const faults::Record& record) {
  const auto call = static_cast<faults::HostCall>(record.call);
  if (call == faults::HostCall::Looking) return "host probes are loaded";
  if (call == faults::HostCall::Reading) return "host meters are read";
  const HostDeed deed = DeedOf(call);
  const bool descriptor = deed.acquires == driver::Kind::FileDescriptor || deed.releases == driver::Kind::FileDescriptor;
  if (descriptor) {
    std::string line = CallName(SiteOf(record)) + ": ";
    line += record.argument[0] == 0 ? "no descriptor" : fmt::format("descriptor {}", record.argument[0] - 1);
    if (record.argument[1] == faults::kNotOpen || record.argument[1] == faults::kClosedAgain) line += ", which was not open";
    if (record.argument[1] == faults::kOpenAtBegin) line += ", open at the begin";
    return line;
  }
  return fmt::format("{}({:#x}, {})", CallName(SiteOf(record)), record.argument[0], record.argument[1]);
}

// Records that name an object by its kind and handle.
struct ArgumentRow {
  std::uint32_t flag;
  const char* before;
  const char* does;
};
constexpr ArgumentRow kObjectArguments[] = {
    {faults::kStandsOn, "what", "makes stands on"}, {faults::kNames, "declined", "names"}, {faults::kLends, "what", "makes holds"}};

std::string RecordLine(const faults::Record& record) {
  switch (record.kind) {
    case faults::RecordKind::Call:
      return CallLine(record);
    case faults::RecordKind::Argument:
      if ((record.flags & faults::kMemoryNode) != 0 && record.argument[1] == 0)
        return fmt::format("memory node of call {}: frees {:#x}", record.context, record.argument[0]);
      if ((record.flags & faults::kMemoryNode) != 0)
        return fmt::format("memory node of call {}: {:#x}, {} bytes", record.context, record.argument[0], record.argument[1]);
      if ((record.flags & faults::kMovedGraph) != 0)
        return fmt::format("child graph moved by call {}: {:#x}", record.context, record.argument[0]);
      if ((record.flags & faults::kCopiedGraph) != 0)
        return fmt::format("child graph copied by call {}: {:#x}", record.context, record.argument[0]);
      if ((record.flags & faults::kCapturedNode) != 0)
        return fmt::format("node of call {}: {:#x}, captured on stream {:#x}", record.context, record.argument[0], record.argument[1]);
      if ((record.flags & faults::kDescriptor) != 0 && record.argument[0] != 0)
        return fmt::format("descriptor made by call {}: {}", record.context, record.argument[0] - 1);
      if ((record.flags & faults::kDescriptor) != 0)
        return fmt::format("descriptor taken over by call {}: {}", record.context, record.argument[1] - 1);
      for (const ArgumentRow& row : kObjectArguments) {
        if ((record.flags & row.flag) == 0 || record.argument[0] >= driver::kKindCount) continue;
        return fmt::format("{} call {} {} {} {:#x}", row.before, record.context, row.does,
                           driver::Name(static_cast<driver::Kind>(record.argument[0])), record.argument[1]);
      }
      if ((record.flags & faults::kLaunchWords) != 0)
        return fmt::format("words of launch {}: {:#x} {:#x} {:#x} ...", record.context, record.argument[0], record.argument[1],
                           record.argument[2]);
      return fmt::format("addresses for call {}: {:#x} {:#x} {:#x} ...", record.context, record.argument[0], record.argument[1],
                         record.argument[2]);
    case faults::RecordKind::Mark:
      if (record.call == static_cast<std::uint16_t>(faults::MarkKind::Phase)) return fmt::format("phase {}", PhaseName(record.phase));
      if (record.call == static_cast<std::uint16_t>(faults::MarkKind::Report)) return "report " + SaidCode(record.argument[0]);
      if (record.call == static_cast<std::uint16_t>(faults::MarkKind::BlockOut) ||
          record.call == static_cast<std::uint16_t>(faults::MarkKind::BlockBack))
        return fmt::format("{}: {:#x}, {} bytes", At(kMarks, record.call, "unknown mark"), record.argument[0], record.argument[1]);
      return fmt::format("{} ({})", At(kMarks, record.call, "unknown mark"), record.cycle);
    case faults::RecordKind::Process:
      return fmt::format("{} (parent {})", At(kProcessEvents, record.call, "unknown process event"), record.argument[0]);
    case faults::RecordKind::Host:
      return HostLine(record);
    case faults::RecordKind::Misuse:
      return MisuseLine(record);
    case faults::RecordKind::Stop:
      return record.call == 0 ? "at the deadline" : "died of " + CallName(SiteOf(record));
    case faults::RecordKind::Empty:
      return "never written";
  }
  return fmt::format("unknown record kind {}", static_cast<int>(record.kind));
}

void AddRecords(const faults::JournalView& journal, Page* page) {
  std::vector<const faults::Record*> records;
  std::size_t empty = 0;
  for (const faults::Record& record : journal.records()) {
    if (record.kind == faults::RecordKind::Empty) {
      ++empty;
    } else {
      records.push_back(&record);
    }
  }
  std::stable_sort(records.begin(), records.end(), [](const faults::Record* a, const faults::Record* b) { return a->begin < b->begin; });
  for (const faults::Record* const record : records)
    page->Line("{:>8} {}/{} {}", record->begin, record->pid, record->tid, RecordLine(*record));
  if (empty != 0) page->Line("{} records were never written", empty);
}

void AddPlace(std::string_view what, const Observation& seen, const Site& site, SiteTexts* sites, Page* page) {
  const report::Acquired& place = sites->Text(seen.journal, site, SiteKey(seen.journal, site));
  if (place.call.empty()) return;
  page->Line("  {} {} at {}", what, place.call, site.begin);
  for (const report::Frame& frame : report::ShownFrames(place.stack)) page->Line("    {}", report::Describe(frame));
}

// Peer access has no handle: its number in the ledger is made of the two contexts.
std::string NameOf(const Object& object) {
  if (object.kind != driver::Kind::PeerAccess) return fmt::format("{:#x}", object.handle);
  return fmt::format("of context {:#x} to {:#x}", object.context, object.parent);
}

std::string NameOf(const Observation& seen, const Violation& violation) {
  if (violation.kind != driver::Kind::PeerAccess || violation.object < 0) return fmt::format("{:#x}", violation.handle);
  return NameOf(seen.ledger.objects[static_cast<std::size_t>(violation.object)]);
}

void AddLedger(const Observation& seen, Page* page) {
  SiteTexts sites;
  page->Line("");
  page->Line("alive at the end:");
  std::size_t count = 0;
  std::size_t others = 0;
  for (const Object& object : seen.ledger.objects) {
    if (object.state == State::Released || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent) continue;
    if (object.driver_owned || object.part_of_other) {
      ++others;
      continue;
    }
    ++count;
    page->Line("{} {}, {} bytes, {}", driver::Name(object.kind), NameOf(object), object.bytes,
               At(kStates, static_cast<std::size_t>(object.state), {}));
    AddPlace("acquired by", seen, object.acquired, &sites, page);
  }
  if (count == 0) page->Line("nothing");
  if (others != 0) page->Line("host resources of the driver, of libraries, threads and helpers: {}", others);
  page->Line("");
  page->Line("violations:");
  for (const Violation& violation : seen.ledger.violations) {
    page->Line("{}: {} {}", Name(violation.rule), driver::Name(violation.kind), NameOf(seen, violation));
    AddPlace("shown by", seen, violation.where, &sites, page);
    AddPlace(words::OtherCallOf(violation.rule).is, seen, violation.other, &sites, page);
  }
  if (seen.ledger.violations.empty()) page->Line("none");
}

}  // namespace

Exit ExplainCommand(const Options& options) {
  if (!options.rule.empty()) return ExplainWord(options.rule);
  Progress progress(options.progress);
  Result<Observation> seen = ReadShown(options.operand, &progress);
  if (!seen.ok()) {
    const bool is_word = access(options.operand.c_str(), F_OK) != 0 && !PageOf(options.operand).empty();
    Say(is_word ? options.operand + ": no such file; --rule " + options.operand + " says what the word means" : seen.status().message());
    return Exit::Usage;
  }
  if (seen->recording != nullptr && !options.every_record) return ExplainRecording(options, std::move(*seen), &progress);
  const bool as_text = options.outputs.size() == 1 && options.outputs.front().format == Format::Text && options.output.empty();
  if (!as_text) return Refuse({Exit::Usage, "--format, --output: expected a recording: this journal is printed as text to stdout"});
  progress.Step("printing " + ShortName(options.operand), 1, kRecordingSteps);
  Page page;
  AddHeader(seen->journal, &page);
  AddRecords(seen->journal, &page);
  AddLedger(*seen, &page);
  progress.Clear();
  if (const Exit printed = Print(page.text); printed != Exit::Clean) return printed;
  const Status whole = CheckWhole(*seen);
  return whole.ok() ? Exit::Clean : Refuse(whole);
}

}  // namespace cuaudit::harness
