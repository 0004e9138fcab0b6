// SPDX-License-Identifier: MIT
// course.h: tells a leak from a cache that fills and stops, by how an exact count went on from cycle to cycle.
//
//   Units     cycles; objects alive after so many cycles.
//   Errors    none. What the counts cannot tell is Trend::Undecided.
//
// A count that grew is `bounded` once it has stood still for as many cycles as it took to get there. It must stand still for seven times
// as many when it fell in between, or rose between two counts only, which may be the first loss of a rare leak. It is `growth` while each
// doubling of the cycles adds objects about as fast as the one before. README.md has the argument.
#pragma once

#include <cstdint>
#include <span>

#include "harness/ledger/rules.h"
#include "reports/run.h"

namespace cuaudit::harness {

// `cycles` increases, and `live` holds the count after each of them. A single doubling (two counts) shows growth when the last count is the
// highest.
report::Course JudgeCourse(std::span<const std::uint64_t> cycles, std::span<const std::uint64_t> live);

// For counts at the end of each cycle. The first one is from before the first cycle.
report::Course JudgeEachCycle(std::span<const std::uint64_t> live);

// The rule that reports this trend. The trend must not be Steady.
Rule RuleOf(report::Trend trend);

// True while more cycles could show something else: a count that still grows may be that of a cache that is not full.
inline bool IsOpen(const report::Course& course) {
  return course.trend == report::Trend::Growth || course.trend == report::Trend::Undecided;
}

}  // namespace cuaudit::harness
