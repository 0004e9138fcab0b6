// SPDX-License-Identifier: MIT
#include "harness/cli/recording_report.h"

#include <fmt/core.h>
#include <string.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/kinds.h"
#include "faults/journal/recording.h"
#include "harness/cli/progress.h"
#include "harness/cli/session.h"
#include "harness/cycle/cycles.h"
#include "harness/cycle/snapshot.h"
#include "harness/options/report_files.h"
#include "harness/process/shell.h"
#include "harness/recording/recording.h"
#include "harness/verdict/evidence/site_keys.h"
#include "harness/verdict/parts.h"
#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/text_page.h"
#include "reports/words/words.h"

namespace cuaudit::harness {
namespace {

bool Whole(const Observation& seen) { return seen.recording == nullptr || seen.recording->Whole(); }

report::Run NewRun(const Observation& seen, report::Mode mode) {
  report::Run run;
  run.mode = mode;
  run.tool_version = std::string(ToolVersion());
  run.generated = Timestamp();
  if (seen.recording != nullptr) run.scope = "process";
  DescribeRun(seen, &run);
  return run;
}

// A count that only takes the place of objects from before the recording is no growth that anybody has seen.
void RestrainGrowth(const Observation& seen, report::Run* run) {
  if (seen.recording == nullptr || seen.recording->WholeOfWhatLasts()) return;
  std::set<driver::Family> replaced;
  for (const auto& [kind, count] : HeldBefore(seen.journal, seen.ledger)) replaced.insert(driver::FamilyOf(kind));
  const auto is_replaced = [&](const report::Finding& finding) {
    if (finding.rule != words::Rule::Growth) return false;
    for (std::size_t kind = 0; kind < driver::kKindCount; ++kind) {
      if (driver::Name(static_cast<driver::Kind>(kind)) == finding.kind)
        return replaced.contains(driver::FamilyOf(static_cast<driver::Kind>(kind)));
    }
    return false;
  };
  for (report::Finding& finding : run->findings) {
    if (!is_replaced(finding)) continue;
    words::Add({words::Detail::PutBesideOlder}, &finding.detail);
    run->notes.push_back(finding);
  }
  std::erase_if(run->findings, is_replaced);
}

std::vector<Snapshot> CompareMarkedCycles(const Observation& seen, const std::string& again, SiteTexts* sites, report::Run* run) {
  std::vector<Snapshot> snapshots = MarkedSnapshots(seen, Moments::Spread, sites);
  if (snapshots.size() < 2) return snapshots;
  CompareSnapshots(snapshots, again, run);
  RestrainGrowth(seen, run);
  ShowFirstAndLast(run);
  return snapshots;
}

// What lies behind the last cycle is judged at the end of the run, so of the cycles only what grows is added.
void AddGrowth(const Observation& seen, const std::string& again, SiteTexts* sites, report::Run* run) {
  report::Run cycles;
  if (CompareMarkedCycles(seen, again, sites, &cycles).size() < 2) return;
  run->cycle_counts = std::move(cycles.cycle_counts);
  run->cycle_rows = std::move(cycles.cycle_rows);
  run->per_cycle = std::move(cycles.per_cycle);
  const auto of_cycles = [](const report::Finding& finding) {
    return finding.rule == words::Rule::Growth || finding.rule == words::Rule::Bounded || finding.rule == words::Rule::Undecided;
  };
  std::copy_if(cycles.findings.begin(), cycles.findings.end(), std::back_inserter(run->findings), of_cycles);
  std::copy_if(cycles.notes.begin(), cycles.notes.end(), std::back_inserter(run->notes), of_cycles);
}

// True when every process that called the driver reached its end by itself. Otherwise what it held died with it, or it still runs.
bool AllReachedTheirEnd(const Observation& seen) {
  const Facts& facts = seen.ledger.facts;
  return std::all_of(facts.processes.begin(), facts.processes.end(),
                     [](const ProcessFacts& process) { return process.calls == 0 || process.exit != 0; });
}

// True when what a process left at its end can be judged: not when records are missing. The judge knows by itself which processes have no
// end; what those left is listed instead.
bool JudgesWhatIsLeft(const Observation& seen) { return seen.recording->Undamaged(); }

// The outcome when nothing is wrong in what was seen. What was not seen is said beside findings as well: without them, suppressed ones
// would leave a clean report.
void JudgeWithoutFindings(const Observation& seen, report::Run* run) {
  const bool found = !run->findings.empty();
  Details why;
  if (run->totals.calls == 0) {
    why = {{Detail::NeverCalled}};
  } else if (!Whole(seen)) {
    why = {{found ? Detail::PartMissing : Detail::RightAsFarAsSeen}};
  } else if (run->mode == report::Mode::Run && !AllReachedTheirEnd(seen)) {
    if (!found) why = {{Detail::NothingWrongBut}};
    why.push_back({Detail::ListedNotJudged});
  }
  run->outcome = why.empty() ? words::Outcome::Clean : words::Outcome::NotExercised;
  if (!why.empty()) run->message.told = Words(why);
}

using report::Plural;

constexpr std::size_t kMostUnderWay = 8;

struct Lines : report::Page {
  void Row(std::string_view label, const words::DetailPart& part) { Line("  {:<8} {}", label, Words(part)); }
  void Place(const report::Acquired& place, std::string_view indent) {
    for (const report::Frame& frame : report::ShownFrames(place.stack)) Line("{}{}", indent, report::ForTerminal(report::Describe(frame)));
  }
};

std::string Moment(std::uint64_t hundredths) {
  const auto seconds = static_cast<std::time_t>(hundredths / 100);
  std::tm utc = {};
  char text[64] = "an unknown time";
  if (gmtime_r(&seconds, &utc) != nullptr) (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

std::string Time(std::uint64_t hundredths) { return fmt::format("{}.{:02} s", hundredths / 100, hundredths % 100); }

void AddExtent(const Observation& seen, Lines* page) {
  const faults::JournalHeader& header = seen.journal.header();
  const Recording& recording = *seen.recording;
  const std::string version(header.tool_version, strnlen(header.tool_version, sizeof(header.tool_version)));
  page->Line("recording {}", report::ForTerminal(seen.path));
  page->Row("made by", {Detail::RecordedBy, {report::ForTerminal(version), Moment(header.started)}});
  if (!recording.times.empty()) {
    const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
    page->Row("has", {Detail::RecordsFromTo, {Plural(recording.records.size(), "record"), Time(*first), Time(*last)}});
  }
  const std::uint64_t lasting = recording.gone[faults::kLasting];
  const std::uint64_t passing = recording.gone[faults::kPassing];
  if (recording.gone_until[faults::kLasting] != 0)
    page->Row("lacks", {Detail::BeginningLost, {Plural(lasting, "record"), lasting == 1 ? "is" : "are"}});
  if (recording.gone_until[faults::kPassing] != 0) page->Row("lacks", {Detail::PassingLost, {Plural(passing, "record")}});
  if (recording.torn != 0) page->Row("torn", {Detail::TornRecords, {Plural(recording.torn, "record")}});
  if (recording.damaged != 0) page->Row("damaged", {Detail::DamagedRecords, {Plural(recording.damaged, "record")}});
  if (recording.counts_unknown) page->Row("lacks", {Detail::CountsUnknown});
  if (recording.dropped != 0) page->Row("dropped", {Detail::NoRoomForRecords, {Plural(recording.dropped, "record")}});
  if ((header.flags.load() & faults::kNoSpace) != 0) page->Row("disk", {Detail::DiskWasFull});
  if (recording.Whole()) page->Row("lacks", {Detail::BeginsWithProgram});
}

// Calls that have no record here, because they only ask and succeeded, or because their record is gone.
void AddCounted(const Observation& seen, Lines* page) {
  std::vector<char> plain(driver::kBaseCount, 0);
  for (std::size_t call = 0; call < driver::kCallCount; ++call) {
    const auto id = static_cast<driver::CallId>(call);
    if (faults::IsPlainQuery(id)) plain[driver::Index(driver::BaseOf(id))] = 1;
  }
  std::uint64_t counted = 0;
  for (std::size_t base = 0; base < driver::kBaseCount; ++base) {
    if (plain[base] != 0) counted += seen.journal.header().occurrences[base].load();
  }
  for (const std::uint32_t index : seen.ledger.facts.calls) {
    const bool recorded = plain[driver::Index(BaseOf(seen.journal.records()[index]))] != 0;
    if (recorded && counted != 0) --counted;
  }
  if (counted != 0) page->Row("counted", {Detail::OnlyCounted, {Plural(counted, "call")}});
}

// What the calls before the recording acquired cannot be known; their number can, because the calls are counted in the header.
void AddBefore(const Observation& seen, Lines* page) {
  if (seen.recording->WholeOfWhatLasts()) return;
  std::uint64_t acquires = 0;
  std::uint64_t releases = 0;
  std::vector<std::uint64_t> here(driver::kBaseCount, 0);
  for (const std::uint32_t index : seen.ledger.facts.calls) ++here[driver::Index(BaseOf(seen.journal.records()[index]))];
  for (std::size_t base = 0; base < driver::kBaseCount; ++base) {
    const std::uint64_t all = seen.journal.header().occurrences[base].load();
    const std::uint64_t before = all > here[base] ? all - here[base] : 0;
    const driver::Effect effect = driver::EffectOf(static_cast<driver::BaseId>(base)).effect;
    if (driver::IsAcquire(effect)) acquires += before;
    if (driver::IsRelease(effect)) releases += before;
  }
  page->Row("before", {Detail::BeforeRecording, {Plural(acquires, "call"), Plural(releases, "call")}});
  for (const auto& [kind, count] : HeldBefore(seen.journal, seen.ledger))
    page->Row("", {Detail::HeldBeforeRecord, {std::to_string(count), std::string(driver::Name(kind))}});
}

void AddProcesses(const Observation& seen, SiteTexts* sites, Lines* page) {
  const Facts& facts = seen.ledger.facts;
  std::size_t idle = 0;
  for (const ProcessFacts& process : facts.processes) {
    const auto stop = std::find_if(facts.stops.begin(), facts.stops.end(), [&](std::uint32_t index) {
      const faults::Record& record = seen.journal.records()[index];
      return record.pid == process.pid && record.call != 0;
    });
    if (process.calls == 0 && stop == facts.stops.end()) {
      ++idle;
      continue;
    }
    std::string end = Words(words::DetailPart{process.exit != 0 ? Detail::ReachedItsExit : Detail::NoEndRecorded});
    if (stop != facts.stops.end()) end = Words({Detail::DiedOf, {words::SignalName(seen.journal.records()[*stop].call)}});
    page->Row("process", {Detail::EndOfProcess, {std::to_string(process.pid), Plural(process.calls, "driver call"), end}});
    if (stop == facts.stops.end()) continue;
    const Site site = SiteOf(seen.journal.records()[*stop]);
    page->Place(sites->Text(seen.journal, site, SiteKey(seen.journal, site)), "             ");
  }
  if (idle != 0) page->Row("process", {Detail::WithoutCall, {std::to_string(idle)}});
}

void AddUnderWay(const Observation& seen, SiteTexts* sites, Lines* page) {
  std::size_t count = 0;
  for (const std::uint32_t index : seen.ledger.facts.calls) {
    const faults::Record& record = seen.journal.records()[index];
    if (record.end != 0 || count++ >= kMostUnderWay) continue;
    const Site site = SiteOf(record);
    const report::Acquired& place = sites->Text(seen.journal, site, SiteKey(seen.journal, site));
    page->Line("  {}", Words({Detail::UnderWay, {place.call, std::to_string(record.tid)}}));
    page->Place(place, "             ");
  }
  if (count > kMostUnderWay) page->Line("  {}", Words({Detail::MoreUnderWay, {std::to_string(count - kMostUnderWay)}}));
}

void AddHeld(const Observation& seen, SiteTexts* sites, Lines* page) {
  const bool judged = JudgesWhatIsLeft(seen);
  if (judged && AllReachedTheirEnd(seen)) return;  // then the report says what was left
  Observation of_killed;
  of_killed.journal = seen.journal;
  for (const Object& object : seen.ledger.objects) {
    const ProcessFacts* const process = seen.ledger.facts.Process(object.pid);
    if (!judged || process == nullptr || process->exit == 0) of_killed.ledger.objects.push_back(object);
  }
  const Snapshot held = TakeSnapshot(of_killed, 0, kAtExit, sites);
  page->Line("");
  Details title = {{Detail::HeldAtItsEnd}};
  if (!AllReachedTheirEnd(seen)) title.push_back({Detail::GoneIfKilled});
  page->Line("{}:", Words(title));
  for (const LiveSite& site : held.live) {
    page->Line("  {} {}, {} bytes: {}{}", site.live, driver::Name(site.kind), site.bytes, site.acquired.call,
               site.library_kept ? Words({Detail::KeptByRuntime}) : "");
    page->Place(site.acquired, "    ");
  }
  if (held.live.empty()) page->Line("  nothing");
}

// What text says of a recording before its report: what it has and lacks, how its processes ended, what died with them.
std::string RecordingPage(const Observation& seen, SiteTexts* sites) {
  Lines page;
  AddExtent(seen, &page);
  AddCounted(seen, &page);
  AddBefore(seen, &page);
  AddProcesses(seen, sites, &page);
  AddUnderWay(seen, sites, &page);
  AddHeld(seen, sites, &page);
  page.Line("");
  return page.text;
}

// The object files whose functions could not be named here; empty when there are none.
std::string NotFoundPage(const SiteTexts& sites) {
  const auto files = sites.NotFound();
  if (files.empty()) return {};
  Lines page;
  page.Line("");
  page.Line("{}:", Words({Detail::NotOnThisMachine}));
  for (const auto& [path, id] : files)
    page.Line("  {}, {}", report::ForTerminal(path), Words({id.empty() ? Detail::WithoutBuildId : Detail::BuildId, {id}}));
  return page.text;
}

}  // namespace

report::Run ReportOfRecording(const Observation& seen, const std::string& file, SiteTexts* sites) {
  const std::string again = "cuaudit explain " + ShellQuote(file);
  report::Run run = NewRun(seen, report::Mode::Run);
  JudgeOptions judge = {.nothing_may_stay = JudgesWhatIsLeft(seen)};
  Groups groups;
  AddFaultFree(seen, {}, sites, &groups, &run, judge);
  // What died with its process stands on the page, with its stacks.
  std::erase_if(run.notes, [](const report::Finding& note) { return note.rule == words::Rule::ProcessLifetime; });
  AddGrowth(seen, again, sites, &run);
  for (std::vector<report::Finding>* const entries : {&run.findings, &run.notes}) {
    for (report::Finding& one : *entries) one.reproduce = again;
  }
  FindDefects(&run);
  run.live = LiveTable(seen.ledger);
  JudgeWithoutFindings(seen, &run);
  if (!run.findings.empty()) run.outcome = WithFindings(run);
  return run;
}

Result<Observation> ReadShown(const std::string& path, Progress* progress) {
  progress->Step("reading " + ShortName(path), 0, kRecordingSteps);
  Result<Observation> seen = ReadObservation(path, Ending());
  progress->Clear();
  return seen;
}

Status CheckWhole(const Observation& seen) {
  if (!seen.journal.truncated()) return {};
  return {Exit::Usage, seen.path + ": the journal is cut: expected " + std::to_string(seen.journal.header().file_bytes) + " bytes, found " +
                           std::to_string(seen.file.size())};
}

Exit ExplainRecording(const Options& options, Observation seen, Progress* progress) {
  const Status whole = CheckWhole(seen);
  if (!whole.ok()) return Refuse(whole);
  const Status writable = CheckOutputs(options);
  if (!writable.ok()) return Refuse(writable);
  SiteTexts sites;
  sites.LookIn(options.modules);
  sites.MarkRuntimeOwned(seen.journal, &seen.ledger);
  progress->Step("judging " + ShortName(options.operand), 1, kRecordingSteps);
  const report::Run run = ReportOfRecording(seen, options.operand, &sites);
  progress->Clear();
  const auto is_page = [](const Output& output) { return output.format == Format::Text && output.file.empty(); };
  const auto page = std::find_if(options.outputs.begin(), options.outputs.end(), is_page);
  // The page comes last: a reader of stdout that has read enough ends the process.
  Options others = options;
  std::erase_if(others.outputs, is_page);
  const Exit delivered = WriteOutputs(run, others);
  if (page == options.outputs.end()) return delivered;
  Exit printed = Print(RecordingPage(seen, &sites));
  if (printed != Exit::Clean) return printed;
  const Status written = WriteReport(run, *page);
  if (!written.ok()) return Refuse(written);
  printed = Print(NotFoundPage(sites));
  return printed == Exit::Clean ? delivered : printed;
}

Exit CyclesOfRecording(const Options& options) {
  const Status writable = CheckOutputs(options);
  if (!writable.ok()) return Refuse(writable);
  Result<Suppressions> suppressions = Suppressions::Given(options.suppressions);
  if (!suppressions.ok()) return Refuse(suppressions.status());
  Progress progress(options.progress);
  Result<Observation> seen = ReadShown(options.from_journal, &progress);
  const Status usable = seen.ok() ? CheckWhole(*seen) : seen.status();
  if (!usable.ok()) return Refuse({Exit::Usage, usable.message()});
  SiteTexts sites;
  sites.LookIn(options.modules);
  sites.MarkRuntimeOwned(seen->journal, &seen->ledger);
  report::Run run = NewRun(*seen, report::Mode::Cycles);
  const std::string again = "cuaudit cycles --from-journal " + ShellQuote(options.from_journal);
  progress.Step("judging " + ShortName(options.from_journal), 1, kRecordingSteps);
  const std::size_t cycles = CompareMarkedCycles(*seen, again, &sites, &run).size();
  progress.Clear();
  if (cycles < 2) {
    return Refuse({Exit::Usage, options.from_journal + ": expected a recording of a program that marks at least two cycles " +
                                    "(cuaudit/mark.h): it has " + std::to_string(cycles)});
  }
  FindDefects(&run);
  JudgeWithoutFindings(*seen, &run);
  if (run.message.undecided) run.outcome = words::Outcome::NotExercised;
  if (!run.findings.empty()) run.outcome = words::Outcome::Findings;
  SayLeftOut(run);
  Accept(std::move(*suppressions), &run);
  return WriteOutputs(run, options);
}

}  // namespace cuaudit::harness
