// SPDX-License-Identifier: MIT
#include "harness/cli/recording_page.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string_view>
#include <utility>

#include "faults/driver/effects.h"
#include "faults/driver/kinds.h"
#include "faults/journal/recording.h"
#include "harness/cli/recording_report.h"
#include "harness/cycle/snapshot.h"
#include "harness/recording/held_before.h"
#include "harness/recording/recording.h"
#include "harness/verdict/death.h"
#include "reports/escape.h"
#include "reports/text_writer.h"

namespace cuaudit::harness {
namespace {

constexpr std::size_t kMostUnderWay = 8;

class Lines {
 public:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_.push_back('\n');
  }
  void Place(const report::Acquired& place, std::string_view indent) {
    for (const report::Frame& frame : report::ShownFrames(place.stack)) Add("{}{}", indent, report::ForTerminal(report::Describe(frame)));
  }
  std::string Take() const { return {text_.data(), text_.size()}; }

 private:
  fmt::memory_buffer text_;
};

std::string Moment(std::uint64_t hundredths) {
  const auto seconds = static_cast<std::time_t>(hundredths / 100);
  std::tm utc = {};
  char text[64] = "an unknown time";
  if (gmtime_r(&seconds, &utc) != nullptr) (void)std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

std::string Time(std::uint64_t hundredths) { return fmt::format("{}.{:02} s", hundredths / 100, hundredths % 100); }

std::string Plural(std::uint64_t count, std::string_view noun, std::string_view nouns) {
  return fmt::format("{} {}", count, count == 1 ? noun : nouns);
}

void AddExtent(const Observation& seen, Lines* page) {
  const faults::JournalHeader& header = seen.journal.header();
  const Recording& recording = *seen.recording;
  const std::string version(header.tool_version, strnlen(header.tool_version, sizeof(header.tool_version)));
  page->Add("recording {}", report::ForTerminal(seen.path));
  page->Add("  made by  cuaudit {}, {}", report::ForTerminal(version), Moment(header.started));
  if (!recording.times.empty()) {
    const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
    page->Add("  has      {} from {} to {} after that", Plural(recording.records.size(), "record", "records"), Time(*first), Time(*last));
  }
  const std::uint64_t lasting = recording.gone[faults::kLasting];
  const std::uint64_t passing = recording.gone[faults::kPassing];
  if (recording.gone_until[faults::kLasting] != 0)
    page->Add("  lacks    its beginning: {} made room, or {} older than --last", Plural(lasting, "record", "records"),
              lasting == 1 ? "is" : "are");
  if (recording.gone_until[faults::kPassing] != 0)
    page->Add("  lacks    {} of launches, copies, queries and waits from its beginning: what they did wrong cannot be seen",
              Plural(passing, "record", "records"));
  if (recording.torn != 0) page->Add("  torn     {}: a process was killed while it wrote", Plural(recording.torn, "record", "records"));
  if (recording.damaged != 0)
    page->Add("  damaged  {}: not what was written, and left out; what is left may have been released there",
              Plural(recording.damaged, "record", "records"));
  if (recording.counts_unknown)
    page->Add(
        "  lacks    perhaps records that were torn or damaged: it was packed by an earlier form of cuaudit, which did not count them");
  if (recording.dropped != 0) page->Add("  dropped  {}: there was no room for them", Plural(recording.dropped, "record", "records"));
  if ((header.flags.load() & faults::kNoSpace) != 0)
    page->Add("  disk     it was full: the recording stayed smaller, or call stacks are missing");
  if (recording.Whole()) page->Add("  lacks    nothing: it begins with the program");
}

// Calls that have no record, because they only ask and succeeded.
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
    const bool recorded = plain[driver::Index(driver::BaseOf(static_cast<driver::CallId>(seen.journal.records()[index].call)))] != 0;
    if (recorded && counted != 0) --counted;
  }
  if (counted != 0)
    page->Add("  counted  {} that only ask, such as cuCtxGetDevice: those that succeed have no record", Plural(counted, "call", "calls"));
}

// What the calls before the recording acquired cannot be known; their number can, because the calls are counted in the header.
void AddBefore(const Observation& seen, Lines* page) {
  if (seen.recording->WholeOfWhatLasts()) return;
  std::uint64_t acquires = 0;
  std::uint64_t releases = 0;
  std::vector<std::uint64_t> here(driver::kBaseCount, 0);
  for (const std::uint32_t index : seen.ledger.facts.calls)
    ++here[driver::Index(driver::BaseOf(static_cast<driver::CallId>(seen.journal.records()[index].call)))];
  for (std::size_t base = 0; base < driver::kBaseCount; ++base) {
    const std::uint64_t all = seen.journal.header().occurrences[base].load();
    const std::uint64_t before = all > here[base] ? all - here[base] : 0;
    const driver::Effect effect = driver::EffectOf(static_cast<driver::BaseId>(base)).effect;
    if (driver::IsAcquire(effect)) acquires += before;
    if (driver::IsRelease(effect)) releases += before;
  }
  page->Add("  before   {} that acquire and {} that release are not in the recording: what is held since then is not judged",
            Plural(acquires, "call", "calls"), Plural(releases, "call", "calls"));
  for (const auto& [kind, count] : HeldBefore(seen.journal, seen.ledger))
    page->Add("           {} of {}: released here, and held since before the record", count, driver::Name(kind));
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
    std::string end = process.exit != 0 ? "reached its exit" : "no end was recorded: it was killed, or it still runs";
    if (stop != facts.stops.end()) end = "died of " + SignalName(seen.journal.records()[*stop].call);
    page->Add("  process  {}: {}, {}", process.pid, Plural(process.calls, "driver call", "driver calls"), end);
    if (stop == facts.stops.end()) continue;
    const Site site = SiteOf(seen.journal.records()[*stop]);
    page->Place(sites->Text(seen.journal, site, SiteKey(seen.journal, site)), "             ");
  }
  if (idle != 0) page->Add("  process  {} more without a driver call", idle);
}

void AddUnderWay(const Observation& seen, SiteTexts* sites, Lines* page) {
  std::size_t count = 0;
  for (const std::uint32_t index : seen.ledger.facts.calls) {
    const faults::Record& record = seen.journal.records()[index];
    if (record.end != 0 || count++ >= kMostUnderWay) continue;
    const Site site = SiteOf(record);
    const report::Acquired& place = sites->Text(seen.journal, site, SiteKey(seen.journal, site));
    page->Add("  under way at the end: {} of thread {}", place.call, record.tid);
    page->Place(place, "             ");
  }
  if (count > kMostUnderWay) page->Add("  under way at the end: {} more", count - kMostUnderWay);
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
  page->Add("");
  page->Add("held when the recording ends{}:", AllReachedTheirEnd(seen) ? "" : ", and gone with a process if it was killed");
  for (const LiveSite& site : held.live) {
    page->Add("  {} {}, {} bytes: {}{}", site.live, driver::Name(site.kind), site.bytes, site.acquired.call,
              site.library_kept ? " (kept by the CUDA runtime)" : "");
    page->Place(site.acquired, "    ");
  }
  if (held.live.empty()) page->Add("  nothing");
}

}  // namespace

std::string RecordingPage(const Observation& seen, SiteTexts* sites) {
  Lines page;
  AddExtent(seen, &page);
  AddCounted(seen, &page);
  AddBefore(seen, &page);
  AddProcesses(seen, sites, &page);
  AddUnderWay(seen, sites, &page);
  AddHeld(seen, sites, &page);
  page.Add("");
  return page.Take();
}

std::string NotFoundPage(const SiteTexts& sites) {
  const auto files = sites.NotFound();
  if (files.empty()) return {};
  Lines page;
  page.Add("");
  page.Add("not on this machine, so that their functions have no names (--modules DIR looks in a directory):");
  for (const auto& [path, id] : files)
    page.Add("  {}, {}", report::ForTerminal(path), id.empty() ? "without a build id" : "build id " + id);
  return page.Take();
}

}  // namespace cuaudit::harness
