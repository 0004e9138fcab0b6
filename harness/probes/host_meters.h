// SPDX-License-Identifier: MIT
// host_meters.h: what one cycle of a lifecycle added to the host resources of its process.
//
//   Threads   CycleMeters belongs to the thread that runs the cycle. The numbers include what other threads acquire or release meanwhile.
//   Units     counts and bytes, as faults/probes/host_probes.def says.
//   Errors    a meter that this system does not have is absent from HostChange::read.
//   Faults    allocates nothing, so that it does not change its own meters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "faults/probes/host_reading.h"
#include "faults/probes/host_watch.h"

namespace cuaudit::harness {

using faults::HostMeter;
using faults::HostMeterSet;
using faults::HostProbeRow;
using faults::HostReading;
using faults::kCheapHostMeters;
using faults::kHostMeterCount;
using faults::kHostMeters;
using faults::kHostProbes;
using faults::ReadHost;

// What a cycle left: the reading after it minus the reading before it.
struct HostChange {
  std::array<std::int64_t, kHostMeterCount> value = {};
  HostMeterSet read;  // meters that are in both readings
  std::int64_t operator[](HostMeter meter) const { return value[static_cast<std::size_t>(meter)]; }
};

[[nodiscard]] HostChange Change(const HostReading& before, const HostReading& after) noexcept;

// Used around one cycle after another:
//
//     CycleMeters meters;
//     meters.Begin();
//     ... the cycle ...
//     const HostChange left = meters.End();
//
// A thread that was joined, or detached and has returned, may be on the kernel's list for a moment longer. While there are more threads
// than at Begin, End reads again for at most `patience_us`. Otherwise End does not wait.
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

// Finds the host drop-in in this process, which is there when linked (CMake: cuaudit::host) or preloaded.
//
//   Errors    null: the drop-in is not in the process, or was built from other headers.
//   Source    faults/probes/host_watch.h describes the functions.

using faults::HostBlind;
using faults::HostNet;
using faults::HostUnseen;
using faults::HostWatchCalls;

// `tables` is driver::TableDigest() of this build.
const HostWatchCalls* FindHostWatch(std::uint64_t tables) noexcept;

}  // namespace cuaudit::harness
