// SPDX-License-Identifier: MIT
// host_meters.h: what one cycle of a lifecycle added to what its process holds of the host.
//
//   Owns      nothing; values.
//   Threads   CycleMeters belongs to the thread that runs the cycle; what other threads take or give meanwhile is in its numbers.
//   Units     counts and bytes, as faults/probes/host_meters.def says.
//   Errors    a meter that this system does not have is absent from HostChange::read.
//   Faults    makes no driver calls; allocates nothing, so that it does not meter itself.
//   Source    ours; the readings are faults/probes/host_reading.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "faults/probes/host_reading.h"

namespace cuaudit::harness {

using faults::HostMeter;
using faults::HostMeterSet;
using faults::HostProbeRow;
using faults::HostReading;
using faults::kCheapHostMeters;
using faults::kHostMeterCount;
using faults::kHostMeters;
using faults::kHostProbes;
using faults::MeterNature;
using faults::ReadHost;

// What a cycle left: after minus before.
struct HostChange {
  std::array<std::int64_t, kHostMeterCount> value = {};
  HostMeterSet read;  // in both readings
  std::int64_t operator[](HostMeter meter) const { return value[static_cast<std::size_t>(meter)]; }

  // Every exact meter that was read stands where it stood. Noisy ones need many cycles to say anything.
  [[nodiscard]] bool ExactIsNeutral() const noexcept;
};

[[nodiscard]] HostChange Change(const HostReading& before, const HostReading& after) noexcept;

// Around one cycle, again and again:
//
//     CycleMeters meters;
//     meters.Begin();
//     ... the cycle ...
//     const HostChange left = meters.End();
//
// A thread that was joined, or detached and has returned, may still be on the kernel's list for a moment: End reads again, for at most
// `patience_us`, while the number of threads is above that at Begin. Nothing is waited for when it is not.
class CycleMeters {
 public:
  explicit CycleMeters(HostMeterSet wanted = kCheapHostMeters, std::uint64_t patience_us = 50000) noexcept
      : wanted_(wanted), patience_us_(patience_us) {}

  void Begin() noexcept { before_ = ReadHost(wanted_); }
  [[nodiscard]] HostChange End() noexcept;

  const HostReading& before() const noexcept { return before_; }
  const HostReading& after() const noexcept { return after_; }

 private:
  HostMeterSet wanted_;
  std::uint64_t patience_us_;
  HostReading before_;
  HostReading after_;
};

}  // namespace cuaudit::harness
