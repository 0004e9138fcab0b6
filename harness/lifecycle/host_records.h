// SPDX-License-Identifier: MIT
// host_records.h: what the host drop-in, if it is in this process, saw of the cycles of a lifecycle: heap blocks, mutexes, references to
// libraries, joinable threads and descriptors, by the place that acquired them.
//
//   Owns      one journal for the life of the process, because threads of the program may still write when an audit ends.
//   Threads   one audit at a time. What other threads of the program do in a cycle is recorded as well.
//   Units     bytes.
//   Errors    without the drop-in Begin answers null and says why.
//   Source    faults/probes/host_watch.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "faults/driver/kinds.h"
#include "faults/journal/journal_view.h"
#include "faults/journal/memory_journal.h"
#include "faults/plan/plan.h"
#include "harness/ledger/host_deed.h"
#include "harness/ledger/ledger.h"
#include "harness/ledger/rules.h"
#include "harness/probes/host_meters.h"

namespace cuaudit::harness {

class HostRecords {
 public:
  // Null when the drop-in is not in this process or already writes to another journal; `why` says which.
  static HostRecords* Begin(std::string* why);
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
  std::size_t end() noexcept { return journal_.journal()->header().next_record.load(std::memory_order_relaxed); }
  faults::JournalView View() const noexcept { return journal_.View(); }

 private:
  const HostWatchCalls* calls_ = nullptr;
  HostBlind blind_;
  faults::MemoryJournal journal_;
};

// One place where one rule is broken: something is kept, or a mutex is freed or locked.
struct HostPlaceKey {
  Rule rule = Rule::Leak;
  driver::Kind kind{};
  std::uint16_t call = 0;
  std::uint32_t stack = 0;  // 0: no stack was taken
  friend bool operator<(const HostPlaceKey& a, const HostPlaceKey& b) {
    return std::tie(a.rule, a.kind, a.call, a.stack) < std::tie(b.rule, b.kind, b.call, b.stack);
  }
};
struct HostTally {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  Site acquired;
  Site where;
};
using HostPlaces = std::map<HostPlaceKey, HostTally>;

// What is held after each part of the records, by place.
class HostFold {
 public:
  void Add(std::span<const faults::Record> records);
  const HostPlaces& places() const { return places_; }
  // Net: acquisitions minus releases, including releases of objects from before the records. Violations: the number of all violations.
  std::int64_t Net(driver::Kind kind) const;
  std::int64_t Violations() const;

 private:
  void AddBlock(const HostDeed& deed, const faults::Record& record);
  void Hold(driver::Kind kind, const faults::Record& record, std::int64_t bytes);
  void Release(driver::Kind kind, const faults::Record& record);
  void Violate(Rule rule, const faults::Record& record);
  HostPlaces places_;
  std::map<std::pair<driver::Kind, std::uint64_t>, std::vector<HostPlaceKey>> held_;
  std::map<driver::Kind, std::int64_t> unseen_;  // releases of objects without a recorded acquisition
};

}  // namespace cuaudit::harness
