// SPDX-License-Identifier: MIT
// host_change.h: what the cycles of a lifecycle left of host resources by the meters: descriptors, threads, loaded libraries, heap.
//
//   Threads   the meters are those of the process. When two audits run at once, neither is metered, and both say so.
//   Units     as faults/probes/host_probes.def says; growth per cycle.
//   Errors    what was not metered is reported with the reason.
//
// README.md says why a trial is repeated before a loss is reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/ledger/rules.h"
#include "harness/lifecycle/host_records.h"
#include "harness/probes/host_meters.h"
#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {

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
// some repeats, and must add up over all.
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

}  // namespace cuaudit::harness
