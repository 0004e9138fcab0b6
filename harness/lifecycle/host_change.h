// SPDX-License-Identifier: MIT
// host_change.h: what the cycles of a lifecycle left of the host's own resources: descriptors, threads, loaded libraries, heap.
//
//   Owns      nothing; values and pure functions, but for the count of audits under way (HostAudit).
//   Threads   the meters are the process's: where two audits run at once neither is metered, and both say so.
//   Units     as faults/probes/host_meters.def says; growth per cycle.
//   Errors    what was not metered is told with the reason, never left out in silence.
//   Faults    makes no driver calls.
//   Source    ours; README.md of this room says why a trial is repeated before anything is said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/lifecycle/host_records.h"
#include "harness/probes/host_meters.h"
#include "harness/sweep/trial.h"

namespace cuaudit::harness {

// A resource of the host that a meter saw to be kept or to grow.
struct MeterFinding {
  Rule rule{};
  std::string detail;
  std::string kind = {};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
TrialFindingText TextOf(const MeterFinding& finding);

// Around every trial's faulted cycle, 3 us; and around every cycle of RunCycles, 9 us. Heap bytes only where no blocks are seen.
inline constexpr HostMeterSet kTrialMeters = {HostMeter::Descriptors, HostMeter::Threads, HostMeter::LoadedObjects, HostMeter::HeapBytes};
inline constexpr HostMeterSet kCountedMeters = {HostMeter::Descriptors, HostMeter::Threads, HostMeter::LoadedObjects};
inline constexpr HostMeterSet kLibraryMeters = {HostMeter::LoadedObjects};
inline constexpr HostMeterSet kCycleMeters = kCheapHostMeters;

// While it lives the process is being metered; `alone` is false once another one lived at the same time.
class HostAudit {
 public:
  // `genuine`: the driver's own blocks, mutexes and threads are among the program's, so the host drop-in is left alone.
  HostAudit(bool wanted, bool genuine);
  ~HostAudit();
  HostAudit(const HostAudit&) = delete;
  HostAudit& operator=(const HostAudit&) = delete;
  bool wanted() const noexcept { return wanted_; }
  bool alone() const noexcept;
  // Null: the host drop-in is not asked; unmetered() says why.
  HostRecords* records() const noexcept { return records_; }
  bool sees_blocks() const noexcept { return records_ != nullptr && records_->blind().heap == nullptr; }
  // What no probe in this process can see.
  std::vector<Because> unmetered() const;

 private:
  bool wanted_;
  bool genuine_;
  HostRecords* records_ = nullptr;
  std::string why_no_records_;
  std::uint64_t entered_ = 0;
};

// What a good cycle keeps, never less than nothing: one that gives back what an earlier one kept is no measure.
HostChange WhatIsKept(const HostChange& good);

// Meters on which a trial kept more than a good cycle does, in the run that was seen first and in every repeat of it. A few bytes of heap
// must add up over the repeats besides: which cycle they are counted in, the C library's caches of freed blocks decide, above all where
// one thread frees what another one allocated.
class HostExcess {
 public:
  static constexpr std::size_t kRepeats = 9;  // at least, unless nothing is left
  // Meters that are not in `asked` are not asked about.
  HostExcess(const HostChange& trial, const HostChange& good, HostMeterSet asked);
  void Repeat(const HostChange& trial, std::uint64_t heap_bytes);  // in use at the end of it
  void DropWhatDoesNotAddUp();                                     // after the last repeat
  bool empty() const { return kept_.empty(); }
  std::size_t repeats_wanted() const;  // of the trial, to be sure of what is left
  std::vector<MeterFinding> Findings() const;

 private:
  struct Kept {
    HostMeter meter;
    std::int64_t least;  // over all runs
  };
  static bool IsFewBytes(const Kept& one);
  HostChange good_;
  std::vector<Kept> kept_;
  std::size_t repeats_ = 0;
  std::uint64_t highest_early_ = 0;         // of the heap, over the second quarter of the repeats
  std::uint64_t lowest_late_ = UINT64_MAX;  // over the last quarter
};

// What grew over cycles. `changes`: one of each cycle. Noisy meters are judged where `noisy` (no kind of object grew).
struct HostGrowth {
  std::vector<MeterFinding> findings;
  std::vector<std::string> unmetered;  // "heap_bytes: why"
  std::string certificate;             // what the noisy meters would have seen; empty: nothing can be said
};
HostGrowth GrowthOf(const std::vector<HostChange>& changes, std::uint32_t warm_up, bool noisy, bool genuine);

}  // namespace cuaudit::harness
