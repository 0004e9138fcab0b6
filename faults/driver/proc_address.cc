// SPDX-License-Identifier: MIT
#include "faults/driver/proc_address.h"

namespace cuaudit::driver {
namespace {

constexpr std::uint64_t kLegacyStream = 1;
constexpr std::uint64_t kPerThreadStream = 2;

struct Range {
  std::size_t first = kCallCount;
  std::size_t count = 0;
};

constexpr struct Ranges {
  Range of[kBaseCount];
  constexpr Ranges() {
    for (std::size_t i = 0; i < kCallCount; ++i) {
      Range& range = of[Index(kCalls[i].base)];
      if (range.count == 0) range.first = i;
      ++range.count;
    }
  }
} kRanges;

}  // namespace

ProcAddress ResolveProcAddress(std::string_view name, int version, std::uint64_t flags) noexcept {
  if (flags > kPerThreadStream || flags == (kLegacyStream | kPerThreadStream)) return {ProcStatus::BadFlags, {}};
  const std::size_t base = FindBase(name);
  if (base == kBaseCount) return {ProcStatus::NotFound, {}};
  const Range range = kRanges.of[base];
  std::size_t plain = kCallCount;
  std::size_t per_thread = kCallCount;
  bool has_per_thread = false;
  // Rows of a base are ordered by variant, then by version, so the last row that fits has the newest version.
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    has_per_thread = has_per_thread || kCalls[i].per_thread;
    if (static_cast<int>(kCalls[i].version) > version) continue;
    (kCalls[i].per_thread ? per_thread : plain) = i;
  }
  // With the per-thread flag, a base that has a per-thread variant never falls back to the plain function.
  const std::size_t chosen = flags == kPerThreadStream && has_per_thread ? per_thread : plain;
  if (chosen == kCallCount) return {ProcStatus::VersionNotSufficient, {}};
  return {ProcStatus::Found, static_cast<CallId>(chosen)};
}

}  // namespace cuaudit::driver
