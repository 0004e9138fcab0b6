// SPDX-License-Identifier: MIT
// growth.h: does a noisy meter grow from cycle to cycle, and how small a leak would have been seen?
//
//   Owns      nothing; pure functions of the meter's readings.
//   Threads   safe everywhere; no state.
//   Units     those of the meter (bytes); growth and bounds per cycle.
//   Errors    none: too few readings make a Growth with `enough` false, which certifies nothing.
//   Faults    makes no driver calls.
//   Source    ours; the all-deltas rule is CPython's refleak, facts/fault-anchors.md section 5. Argued in README.md.
//
// One reading at the end of each cycle. After the warm-up the readings are cut into kBlocks blocks of equal length, and each block counts
// by its median. The meter grows when every block stands higher than the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cuaudit::harness {

inline constexpr std::size_t kBlocks = 10;
// The chance that readings in no particular order rise all the time: 1 / kBlocks!.
inline constexpr double kFalseAlarm = 1.0 / 3628800.0;

struct Growth {
  bool enough = false;                 // there was a block for each of kBlocks
  bool grows = false;                  // every delta above `drift`, and not levelling off
  double per_cycle = 0;                // median of the deltas, per cycle; what grew, if it grows
  std::uint64_t cycles_per_block = 0;  // L
  std::uint64_t noise = 0;             // how far the blocks lie apart, with and without their own slope: the larger of the two
  std::uint64_t drift = 0;             // what a block of the control arm gained at most, if that arm grows too
  std::uint64_t detectable = 0;        // a leak of so much per cycle would have been found
};

// The medians of kBlocks blocks of the last readings; empty when there are fewer than kBlocks readings.
std::vector<std::uint64_t> BlockMedians(std::span<const std::uint64_t> readings);

// `quantum`: the smallest step in which the meter moves. `control`: the same meter in a lifecycle that does nothing, as many cycles of it;
// empty when there is none.
Growth JudgeGrowth(std::span<const std::uint64_t> readings, std::uint64_t quantum, std::span<const std::uint64_t> control = {});

// The same for readings taken `step` cycles apart, one for each block: the ends of kBlocks processes that ran 1, 1 + step, ... cycles.
Growth JudgeGrowthOfRuns(std::span<const std::uint64_t> readings, std::uint64_t step, std::uint64_t quantum,
                         std::span<const std::uint64_t> control = {});

// How many cycles, warm-up not counted, certify `bound` per cycle when blocks are as noisy as in `seen`; at least kBlocks.
std::uint64_t CyclesFor(const Growth& seen, std::uint64_t quantum, std::uint64_t bound);

// How often the rule fires on a series that does not leak: over windows of kBlocks readings that do not overlap.
struct FalseAlarms {
  std::uint64_t alarms = 0;
  std::uint64_t windows = 0;
};
FalseAlarms CountFalseAlarms(std::span<const std::uint64_t> control, std::uint64_t quantum);

}  // namespace cuaudit::harness
