// SPDX-License-Identifier: MIT
// host_records.h: what trials and cycles keep of the host, by place, as the host drop-in records it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
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
  auto operator<=>(const HostPlaceKey&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
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

// Finds the places where a faulted cycle keeps more than a good one: the objects and bytes that it keeps beyond that in all repeats.
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

// Finds the places where clean cycles keep more and more host resources. The cycles run without stacks first, because a stack costs ten
// times as much as counting a block.

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
