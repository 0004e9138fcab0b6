// SPDX-License-Identifier: MIT
// growth.h: decides whether a count or a noisy meter grows from cycle to cycle, and tells a leak from a cache that fills and stops.
//
//   Units     those of the meter (bytes); growth and bounds per cycle.
//   Errors    none. With too few readings `enough` is false, and nothing is certified.
//   Source    the rule that every delta must rise is CPython's (test.libregrtest.refleak). README.md has the argument.
//
// There is one reading at the end of each cycle. The readings after the warm-up are cut into kBlocks blocks of equal length, and each block
// counts by its median. The meter grows when every block is higher than the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/ledger/rules.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Tells a leak from a cache that fills and stops, by how an exact count went on from cycle to cycle.
//
//   Units     cycles; objects alive after so many cycles.
//   Errors    none. What the counts cannot tell is Trend::Undecided.
//
// README.md, section "A leak, or a cache that fills", has the rules.

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

// Of an exact count at increasing moments. Two or three moments show growth when the last count is above the first. More do when the count
// never falls and ends higher, or when the later half never comes down to the level of the earlier half: a cache that is emptied every
// other cycle does neither.
template <typename Count>
bool Grows(const std::vector<Count>& live) {
  if (live.size() < 4) return !live.empty() && live.back() > live.front();
  if (std::is_sorted(live.begin(), live.end())) return live.back() > live.front();
  const auto middle = live.begin() + static_cast<std::ptrdiff_t>(live.size() / 2);
  return *std::min_element(middle, live.end()) > *std::max_element(live.begin(), middle);
}

inline constexpr std::size_t kBlocks = 10;

struct Growth {
  bool enough = false;                 // there were readings for kBlocks blocks
  bool grows = false;                  // every delta is above `drift`, and the series does not level off
  double per_cycle = 0;                // median of the deltas per cycle; the growth if it grows
  std::uint64_t cycles_per_block = 0;  // length of a block, called L in comments
  std::uint64_t noise = 0;             // range of the blocks, before or after subtracting their own slope, whichever is larger
  std::uint64_t drift = 0;             // largest gain of a control block, if the control grows too
  std::uint64_t detectable = 0;        // a leak of this size per cycle would have been found
};

// The medians of kBlocks blocks of the last readings; empty when there are fewer than kBlocks readings.
std::vector<std::uint64_t> BlockMedians(std::span<const std::uint64_t> readings);

// `quantum` is the smallest step in which the meter moves. `control` holds as many readings of the same meter in a program that does
// nothing; empty when there is none.
Growth JudgeGrowth(std::span<const std::uint64_t> readings, std::uint64_t quantum, std::span<const std::uint64_t> control = {});

// For readings `step` cycles apart, one per block: the ends of kBlocks processes that ran 1, 1 + step, ... cycles.
Growth JudgeGrowthOfRuns(std::span<const std::uint64_t> readings, std::uint64_t step, std::uint64_t quantum,
                         std::span<const std::uint64_t> control = {});

// The number of cycles, without warm-up, that certify `bound` per cycle when blocks are as noisy as in `seen`; at least kBlocks.
std::uint64_t CyclesFor(const Growth& seen, std::uint64_t quantum, std::uint64_t bound);

// How often the rule fires on a series without a leak, over disjoint windows of kBlocks readings.
struct FalseAlarms {
  std::uint64_t alarms = 0;
  std::uint64_t windows = 0;
};
FalseAlarms CountFalseAlarms(std::span<const std::uint64_t> control, std::uint64_t quantum);

}  // namespace cuaudit::harness
