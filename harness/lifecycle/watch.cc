// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "include/cuaudit/watch.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "faults/journal/journal_file.h"
#include "faults/journal/stack_table.h"
#include "faults/shim/gate.h"
#include "harness/ledger/folding.h"
#include "harness/lifecycle/chosen_driver.h"
#include "harness/lifecycle/isolation.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "harness/verdict/parts.h"

namespace cuaudit {
namespace {

using faults::Record;
using harness::Folding;
using harness::IsProgramCall;
using harness::Ledger;
using Records = std::vector<Record>;

// A sorted set of record tickets.
class Tickets {
 public:
  void Add(const Records& records) {
    const bool later = tickets_.empty() || records.empty() || tickets_.back() < records.front().begin;
    for (const Record& record : records) tickets_.push_back(record.begin);
    if (!later || !std::is_sorted(tickets_.end() - static_cast<std::ptrdiff_t>(records.size()), tickets_.end()))
      std::sort(tickets_.begin(), tickets_.end());
  }
  bool Has(std::uint64_t ticket) const { return std::binary_search(tickets_.begin(), tickets_.end(), ticket); }

 private:
  std::vector<std::uint64_t> tickets_;
};

struct Span {
  std::vector<Records> parts;  // by time, with those handed down by ended inner spans
  Tickets own, inner;          // own records, and records handed down by ended inner spans
  std::size_t left = 0;        // number of records handed down
  // The fold of the outer spans and of this one's parts. Null when the records cannot be folded part by part.
  std::unique_ptr<Folding> folded = std::make_unique<Folding>();
  std::uint64_t calls = 0;
  std::uint64_t dropped = 0;
  std::string overrun;  // the first inner span that lost records; empty: none
};

// What the open spans hold and did wrong.
struct Standing {
  std::vector<harness::Object> objects;
  std::vector<harness::Violation> violations;
  friend bool operator==(const Standing&, const Standing&) = default;
};

words::DetailPart TooMany(const std::string& who, std::size_t room) { return {harness::Detail::MoreThanRoom, {who, std::to_string(room)}}; }

}  // namespace

struct Watch::Impl {
  const char* why_not = nullptr;
  std::size_t most_records = 0;
  faults::MemoryJournal journal;
  std::unique_ptr<faults::StackTable> stacks = std::make_unique<faults::StackTable>();
  faults::Gate gate;
  std::unique_ptr<harness::Diversion> diversion;
  std::vector<Span> spans = std::vector<Span>(1);  // outermost first; the first one is outside of all watches

  const char* Open(std::size_t records) {
    const driver::DriverRef next = harness::Diversion::Undiverted();
    if (next.table == nullptr) return "cuaudit's drop-in library is not in this process: link cuaudit::dropin, or run under cuaudit run";
    most_records = records;
    faults::JournalOptions options = {.record_capacity = records, .stack_depth = faults::kMaxFrames, .stacks_of_objects_only = true};
    if (const char* wrong = journal.Open(options, false)) return wrong;
    stacks->Attach(journal.journal(), harness::IsOwnObject());
    stacks->LeaveOut(harness::Diversion::DropInCode());
    // Nothing is pinned, so that the program's contexts stay its own.
    gate.Arm(next, journal.journal(), stacks.get(), faults::Plan(), faults::Scope::Process);
    diversion = std::make_unique<harness::Diversion>(faults::Driver(&gate));
    return nullptr;
  }

  // Moves the new records to the innermost span.
  void Drain() {
    Span& span = spans.back();
    Records records;
    span.dropped += journal.Drain(&records);
    span.calls += static_cast<std::uint64_t>(std::count_if(records.begin(), records.end(), IsProgramCall));
    span.own.Add(records);
    Append(&span, std::move(records));
  }

  static void Append(Span* span, Records records) {
    if (records.empty()) return;
    span->parts.push_back(std::move(records));
    if (span->folded != nullptr && !span->folded->Add(span->parts.back())) span->folded = nullptr;
  }

  // The ledger of all open spans, followed by `last`.
  Ledger FoldAll(std::span<const Record> last) const {
    if (spans.back().folded != nullptr) {
      Folding folding(*spans.back().folded);
      if (std::optional<Ledger> ledger = folding.Finish(last)) return *std::move(ledger);
    }
    Records all;
    for (const Span& span : spans) {
      for (const Records& part : span.parts) all.insert(all.end(), part.begin(), part.end());
    }
    all.insert(all.end(), last.begin(), last.end());
    return harness::Fold(all);
  }

  Standing StandingOf(const Ledger& ledger) const {
    const auto is_ours = [this](std::uint64_t ticket) {
      return std::any_of(spans.begin(), spans.end(), [ticket](const Span& span) { return span.own.Has(ticket); });
    };
    Standing standing;
    for (const harness::Object& object : ledger.objects) {
      if (is_ours(object.acquired.begin)) standing.objects.push_back(object);
    }
    for (const harness::Violation& violation : ledger.violations) {
      if (is_ours(violation.where.begin)) standing.violations.push_back(violation);
    }
    return standing;
  }

  // Takes the records of an ended span. Those that changed what the outer spans hold are kept for the outer spans.
  void HandDown(Records records, const std::string& name, const Ledger& before, const Ledger& after) {
    Span& around = spans.back();
    const Standing standing = StandingOf(after);
    if (standing == StandingOf(before)) return;
    std::set<std::uint64_t> released;
    for (const harness::Object& object : standing.objects) released.insert({object.released.begin, object.retried.begin});
    Records releases;
    std::copy_if(records.begin(), records.end(), std::back_inserter(releases),
                 [&](const Record& record) { return released.contains(record.begin); });
    if (StandingOf(FoldAll(releases)) == standing) records = std::move(releases);
    if (around.left + records.size() > most_records) {
      around.overrun = name;
      return;
    }
    around.left += records.size();
    around.inner.Add(records);
    Append(&around, std::move(records));
  }

  // Judges what `ended` itself acquired and `after` still holds.
  void Judge(const Span& ended, const Ledger& before, Ledger after, Audit* audit) const {
    for (harness::Object& object : after.objects) {
      if (!ended.own.Has(object.acquired.begin)) object.state = harness::State::Released;
    }
    std::vector<harness::Violation> known = before.violations;
    std::erase_if(after.violations, [&](const harness::Violation& one) {
      const auto found = std::find(known.begin(), known.end(), one);
      if (found == known.end()) return ended.inner.Has(one.where.begin);
      known.erase(found);
      return true;
    });
    after.facts.calls.clear();  // their records are not kept
    after.facts.marks.clear();
    const Ledger nothing;
    const faults::JournalView tables = journal.View().Part(0, 0);
    const harness::Rehearsed empty({&nothing, &tables, {}});
    const harness::Evidence seen = {&after, &tables, {}};
    std::vector<harness::TrialFinding> findings = harness::CompareViolations(&empty, seen);
    for (harness::TrialFinding& leak : harness::CompareObjects(&empty, seen).leaks) findings.push_back(leak);
    harness::AddFaultFree(harness::Texts(findings, tables, harness::SitesOfThread()), {}, "", audit);
  }
};

Watch::Watch(std::size_t most_records) : impl_(std::make_unique<Impl>()) { impl_->why_not = impl_->Open(most_records); }
Watch::~Watch() = default;

const char* Watch::why_not() const noexcept { return impl_->why_not; }

void Watch::Begin() {
  if (impl_->why_not != nullptr) return;
  impl_->Drain();
  Span span;
  const Span& around = impl_->spans.back();
  span.folded = around.folded == nullptr ? nullptr : std::make_unique<Folding>(*around.folded);
  impl_->spans.push_back(std::move(span));
}

Audit Watch::End(const std::string& name) {
  Audit audit;
  audit.lifecycle = name;
  audit.outcome = AuditOutcome::NotExercised;
  if (impl_->why_not != nullptr) {
    audit.message = impl_->why_not;
    return audit;
  }
  if (impl_->spans.size() == 1) {
    audit.outcome = AuditOutcome::Error;
    audit.message = harness::Words({harness::Detail::EndWithoutBegin});
    return audit;
  }
  impl_->Drain();
  Span ended = std::move(impl_->spans.back());
  impl_->spans.pop_back();
  audit.calls = ended.calls;
  audit.driver = harness::Diversion::UndivertedDriver();

  Records records;
  if (ended.parts.size() == 1) records = std::move(ended.parts.front());  // its memory must stay where `folded` points
  if (ended.parts.size() > 1) {
    for (const Records& part : ended.parts) records.insert(records.end(), part.begin(), part.end());
  }
  const Ledger before = impl_->FoldAll({});
  std::optional<Ledger> after;
  if (ended.folded != nullptr) after = ended.folded->Finish({});
  if (!after) after = impl_->FoldAll(records);
  impl_->Judge(ended, before, *after, &audit);
  impl_->HandDown(std::move(records), name, before, *after);

  if (ended.dropped != 0) {
    impl_->spans.back().overrun = name;
    audit.message = harness::Words(
        harness::Details{TooMany("it", impl_->most_records), {harness::Detail::DroppedUntold, {std::to_string(ended.dropped)}}});
  } else if (!ended.overrun.empty() && !audit.findings.empty()) {
    audit.message = harness::Words(harness::Details{TooMany(ended.overrun, impl_->most_records), {harness::Detail::OutsideUntold}});
  }
  if (!audit.message.empty()) {
    audit.outcome = AuditOutcome::Error;
    audit.Tolerate([](const Finding&) { return true; });
    return audit;
  }
  audit.outcome = !audit.findings.empty() ? AuditOutcome::Findings : audit.calls == 0 ? AuditOutcome::NotExercised : AuditOutcome::Clean;
  if (audit.outcome == AuditOutcome::Clean) audit.message = harness::Words({harness::Detail::NothingLeft});
  if (audit.outcome == AuditOutcome::NotExercised) audit.message = harness::Words({harness::Detail::NoCallMade});
  return audit;
}

}  // namespace cuaudit
