// SPDX-License-Identifier: MIT
// host_records.h: what trials and cycles keep of the host: by place, by meters, and more than a good cycle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "faults/journal/journal_file.h"
#include "faults/journal/journal_view.h"
#include "faults/plan/plan.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/rules.h"
#include "harness/lifecycle/trial_evidence.h"
#include "harness/probes/host_meters.h"
#include "harness/sweep/run/trial.h"
#include "harness/verdict/evidence/finding.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// What the host drop-in, if it is in this process, saw of the cycles of a lifecycle: heap blocks, mutexes, references to
// libraries, joinable threads and descriptors, by the place that acquired them.
//
//   Owns      one journal for the life of the process, because threads of the program may still write when an audit ends.
//   Threads   one audit at a time. What other threads of the program do in a cycle is recorded as well.
//   Units     bytes.
//   Errors    without the drop-in Begin answers null and says why.
//   Source    faults/probes/host_watch.h.

class HostRecords {
 public:
  // Null when the drop-in is not in this process or already writes to another journal; `why` says which.
  static HostRecords* Begin(std::optional<Detail>* why);
  void End() noexcept { calls_->end(); }

  const HostBlind& blind() const noexcept { return blind_; }
  void Clear() noexcept { journal_.Clear(); }
  void StartSpan(bool stacks) noexcept { calls_->start_span(stacks); }
  HostNet EndSpan() noexcept { return calls_->end_span(); }
  void StartAt(const void* frame) noexcept { calls_->start_at(frame); }
  // Refuses the host faults in `plan`, and counts and records them in the trial's journal. Null: no faults.
  void Refuse(faults::Journal* trial, const faults::Plan* plan) noexcept {
    calls_->refuse(trial == nullptr ? nullptr : &trial->header(), plan);
  }
  // A queued function will free the block and what it points to.
  void GiveAway(const void* block) noexcept { calls_->give_away(block); }
  std::uint64_t clock() noexcept { return journal_.journal()->header().clock.load(std::memory_order_relaxed); }
  faults::JournalView View() const noexcept { return journal_.View(); }

 private:
  const HostWatchCalls* calls_ = nullptr;
  HostBlind blind_;
  faults::MemoryJournal journal_;
};

// One place where one rule is broken: something is kept or released twice, or a mutex is freed or locked.
struct HostPlaceKey {
  Rule rule = Rule::Leak;
  driver::Kind kind{};
  std::uint16_t call = 0;
  std::uint32_t stack = 0;  // 0: no stack was taken
  bool again = false;       // of a deficit: the descriptor was closed already; otherwise it was open when the audit began
  friend bool operator<(const HostPlaceKey& a, const HostPlaceKey& b) {
    return std::tie(a.rule, a.kind, a.call, a.stack, a.again) < std::tie(b.rule, b.kind, b.call, b.stack, b.again);
  }
};
struct HostTally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  Site acquired;
  Site where;
  Site other;
};
using HostPlaces = std::map<HostPlaceKey, HostTally>;

// What changed after ticket `after`, up to `until`: acquisitions minus releases, and violations. A release of what the ledger does not know
// changes nothing.
HostPlaces ChangesIn(const Ledger& ledger, std::uint64_t after, std::uint64_t until);
// The same between each of `tickets`, which rise, and the next one, in one pass. A mutex that was never destroyed stays when it was
// initialised again; when its memory was freed a trial breaks a rule, and cycles also count it, as those of programs do.
enum class FreedMutex : std::uint8_t { Gone, Stays };
std::vector<HostPlaces> ChangesBetween(const Ledger& ledger, std::span<const std::uint64_t> tickets, FreedMutex freed);
void Add(const HostTally& change, HostTally* tally);

// What the cycles of a lifecycle left of host resources: descriptors, threads, loaded libraries, heap.
//
//   Threads   the meters are those of the process. When two audits run at once, neither is metered, and both say so.
//   Units     as faults/probes/host_probes.def says; growth per cycle.
//   Errors    what was not metered is reported with the reason.
//
// README.md says why a trial is repeated before a loss is reported.

// A host resource that a meter shows to be kept or to grow.
struct MeterFinding {
  Rule rule{};
  Details detail;
  HostMeter meter{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
TrialFindingText TextOf(const MeterFinding& finding);
// What the meter counts, as a kind and as reports call it. Resident bytes are of no kind.
driver::Kind KindOf(HostMeter meter);
std::string_view WordOf(HostMeter meter);

// kTrialMeters are read around each faulted cycle (3 us), kCycleMeters around each cycle of RunCycles (9 us). Heap bytes are read only
// where blocks are not followed.
inline constexpr HostMeterSet kTrialMeters = {HostMeter::Descriptors, HostMeter::Threads, HostMeter::LoadedObjects, HostMeter::HeapBytes};
inline constexpr HostMeterSet kCountedMeters = {HostMeter::Descriptors, HostMeter::Threads, HostMeter::LoadedObjects};
inline constexpr HostMeterSet kLibraryMeters = {HostMeter::LoadedObjects};
inline constexpr HostMeterSet kCycleMeters = kCheapHostMeters;

// While one exists, the process is metered. `alone` is false once another one existed at the same time.
class HostAudit {
 public:
  // With `genuine` the host drop-in is not used, because it cannot tell the driver's blocks, mutexes and threads from the program's.
  HostAudit(bool wanted, bool genuine);
  ~HostAudit();
  HostAudit(const HostAudit&) = delete;
  HostAudit& operator=(const HostAudit&) = delete;
  bool wanted() const noexcept { return wanted_; }
  bool alone() const noexcept;
  // Null when the host drop-in is not used; unmetered() says why.
  HostRecords* records() const noexcept { return records_; }
  bool sees_blocks() const noexcept { return records_ != nullptr && records_->blind().heap == HostUnseen::No; }
  // What no probe in this process can see.
  std::vector<Because> unmetered() const;

 private:
  bool wanted_;
  bool genuine_;
  HostRecords* records_ = nullptr;
  std::optional<Detail> why_no_records_;  // also empty beside another audit
  std::uint64_t entered_ = 0;
  std::vector<std::unique_ptr<char[]>> taken_;  // TakeCachedBlocks
};

// What a good cycle keeps, at least 0: a cycle that releases what an earlier cycle kept is no measure.
HostChange WhatIsKept(const HostChange& good);

// Meters on which a trial kept more than a good cycle does, in the first run and in every repeat. A few bytes of heap may be missing in
// some repeats, and must add up over all: the C library's caches of freed blocks decide in which cycle a few bytes are counted. A lost
// block may come from there, and then no statistics see it.
class HostExcess {
 public:
  static constexpr std::size_t kRepeats = 9;  // at least, unless nothing is left
  // Only the meters in `asked` are compared.
  HostExcess(const HostChange& trial, const HostChange& good, HostMeterSet asked);
  void Repeat(const HostChange& trial, std::uint64_t heap_bytes);  // heap bytes in use at its end
  void DropWhatDoesNotAddUp();                                     // after the last repeat
  bool empty() const { return kept_.empty(); }
  std::size_t repeats_wanted() const;  // number of repeats that prove the rest
  std::vector<MeterFinding> Findings() const;

 private:
  struct Kept {
    HostMeter meter;
    std::int64_t least;      // over all runs that kept more
    std::size_t unseen = 0;  // repeats that did not
  };
  static bool IsFewBytes(const Kept& one);
  HostChange good_;
  std::vector<Kept> kept_;
  std::size_t repeats_ = 0;
  std::uint64_t highest_early_ = 0;         // highest heap level in the second quarter of the repeats
  std::uint64_t lowest_late_ = UINT64_MAX;  // lowest heap level in the last quarter
};

// What grew over cycles. `changes` has one entry per cycle. Noisy meters are judged only with `noisy`, when no kind of object grew.
struct HostGrowth {
  std::vector<MeterFinding> findings;
  std::vector<std::string> unmetered;  // "heap_bytes: why"
  Details certificate;                 // leaks that the noisy meters would have detected; empty: unknown
};
HostGrowth GrowthOf(const std::vector<HostChange>& changes, std::uint32_t warm_up, bool noisy, bool genuine);

// Finds the places where cycles keep more and more host resources: a faulted cycle more than a good one, or clean cycles one
// after another.
//
//   Units     objects and bytes beyond a good cycle's; the minimum over all repeats.
//
// README.md says why a trial is repeated before a loss is reported.

// What the first cycle of a run kept.
struct HostKept {
  HostNet net;
  HostPlaces places;
  std::int64_t Net(const HostPlaceKey& sort) const;  // of all calls and stacks
  std::int64_t Violations() const;
};
HostKept KeptBy(const HostRecords& records, const HostSpan& span);

class HostLoss {
 public:
  static constexpr std::size_t kRepeats = 9;
  // True when there is something to look for, judged without stacks. With `blocks` heap blocks are judged, too.
  static bool MayBe(const HostKept& trial, const HostKept& good, bool blocks);

  // `good` is from a run with stacks, like the arguments of Repeat. `descriptors`: a meter shows that descriptors are kept.
  HostLoss(HostKept good, bool blocks, bool descriptors) : good_(std::move(good)), blocks_(blocks), descriptors_(descriptors) {}
  // Adds a run with stacks. The first such run must not be added: its purpose is to let the next run name what it releases (README.md).
  void Repeat(const HostKept& trial);
  bool empty() const { return repeats_ != 0 && kept_->empty(); }
  std::vector<TrialFinding> Findings(const faults::JournalView& host) const;

 private:
  bool IsAsked(driver::Kind kind) const;
  HostKept good_;
  bool blocks_;
  bool descriptors_;
  std::size_t repeats_ = 0;
  std::optional<HostPlaces> kept_;  // in every repeat
};

// The text of the findings, by the host drop-in's journal. What GoogleTest keeps of a failed expectation is no loss: it is left out and
// counted in `of_googletest`.
std::vector<TrialFindingText> HostTexts(const std::vector<TrialFinding>& findings, const faults::JournalView& host, SiteTexts* sites,
                                        std::size_t* of_googletest);

// The finding for a place in the host drop-in's journal: "leak", "double_release", "deficit", "mutex_freed" or "mutex_locked".
TrialFinding HostFinding(const HostPlaceKey& key, const HostTally& tally, const faults::JournalView& host);

// Finds the places where clean cycles keep more and more host resources, with the host drop-in.
//
//   Threads   one thread.
//   Units     objects alive at the end of a cycle; exact.
//   Errors    none. When the run with stacks cannot be made, `why_not` says why.
//
// The cycles run without stacks first, because a stack costs ten times as much as counting a block.

// `counts` holds one count after each cycle. The count at the end of the warm-up and those of the later cycles.
template <typename Count>
std::vector<Count> AfterWarmUp(std::span<const Count> counts, std::uint32_t warm_up) {
  return {counts.begin() + std::max(warm_up, 1U) - 1, counts.end()};
}
template <typename Count>
words::DetailPart AliveAfterEach(std::span<const Count> counts) {
  std::string text;
  for (const Count count : counts) text.append(text.empty() ? "" : " ").append(std::to_string(count));
  return {Detail::AliveAfterEach, {text}};
}

// After a run without stacks, with one span per cycle: false when more was alive at once than the drop-in follows.
bool AllWasSeen(const HostRecords& records, const std::vector<HostSpan>& spans);
// True when some cycle after the warm-up kept something, or misused a mutex.
bool MayGrow(const HostRecords& records, const std::vector<HostSpan>& spans, std::uint32_t warm_up);

struct HostGrown {
  faults::JournalView host;
  std::vector<TrialFinding> findings;  // rules growth, bounded, mutex_freed and mutex_locked
  std::string why_not;                 // why nothing can be said
};
// Runs the cycles again with stacks, in another world. With `blocks` heap blocks are judged, too.
HostGrown GrownByPlace(const Lifecycle& lifecycle, const CycleOptions& options, bool blocks, HostRecords* records);

}  // namespace cuaudit::harness
