// SPDX-License-Identifier: MIT
#include "harness/probes/host_meters.h"

#include <dlfcn.h>
#include <sched.h>
#include <time.h>

namespace cuaudit::harness {
namespace {

std::uint64_t NowUs() noexcept {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

HostChange Change(const HostReading& before, const HostReading& after) noexcept {
  HostChange change = {.read = before.read.And(after.read)};
  for (std::size_t i = 0; i < kHostMeterCount; ++i) {
    if (change.read.Has(static_cast<HostMeter>(i))) {
      change.value[i] = static_cast<std::int64_t>(after.value[i]) - static_cast<std::int64_t>(before.value[i]);
    }
  }
  return change;
}

HostChange CycleMeters::End() noexcept {
  after_ = ReadHost(wanted_);
  std::uint64_t until = 0;
  while (after_.read.Has(HostMeter::Threads) && after_[HostMeter::Threads] > before_[HostMeter::Threads]) {
    const std::uint64_t now = NowUs();
    if (until == 0) until = now + patience_us_;
    if (now >= until) break;
    sched_yield();
    after_ = ReadHost(wanted_);
  }
  return Change(before_, after_);
}

const HostWatchCalls* FindHostWatch(std::uint64_t tables) noexcept {
  using Ask = const HostWatchCalls* (*)();
  const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, faults::kHostWatchName));
  const HostWatchCalls* const calls = ask == nullptr ? nullptr : ask();
  return calls != nullptr && calls->digest == faults::HostWatchDigest(tables) ? calls : nullptr;
}

}  // namespace cuaudit::harness
