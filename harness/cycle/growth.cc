// SPDX-License-Identifier: MIT
#include "harness/cycle/growth.h"

#include <cmath>
#include <numeric>

namespace cuaudit::harness {
namespace {

using report::Course;
using report::Trend;

// A count has stopped when it has its highest value up to so many times the cycles after which it first had that value.
constexpr std::uint64_t kAfterRises = 2;
constexpr std::uint64_t kAfterOneRise = 8;

// True for counts at the ends of separate, longer and longer runs. What a count was in between is unknown.
bool AreDoublings(std::span<const std::uint64_t> cycles) { return cycles.size() > 1 && cycles.back() >= 2 * cycles[cycles.size() - 2]; }

// Counts at the ends of successive cycles follow the rule Grows.
bool Grew(std::span<const std::uint64_t> cycles, std::span<const std::uint64_t> live) {
  if (live.size() < 2 || live.back() <= live.front()) return false;
  return AreDoublings(cycles) || Grows(std::vector<std::uint64_t>(live.begin(), live.end()));
}

// The highest count so far, after each of the cycles.
std::vector<std::uint64_t> Peaks(std::span<const std::uint64_t> live) {
  std::vector<std::uint64_t> peaks(live.begin(), live.end());
  for (std::size_t i = 1; i < peaks.size(); ++i) peaks[i] = std::max(peaks[i], peaks[i - 1]);
  return peaks;
}

// The fewest cycles in which the count can have risen: one for each interval that ends higher than it began. Several objects may have
// been added in one cycle, so how much an interval added does not tell how often it rose.
std::uint64_t FewestRises(std::span<const std::uint64_t> peaks) {
  std::uint64_t rises = 0;
  for (std::size_t i = 1; i < peaks.size(); ++i) rises += peaks[i] > peaks[i - 1] ? 1 : 0;
  return rises;
}

// Index of the last count that was taken after half as many cycles as that at `index`, or after fewer; 0 when there is none.
std::size_t HalfOf(std::span<const std::uint64_t> cycles, std::size_t index) {
  std::size_t half = index;
  while (half > 0 && 2 * cycles[half] > cycles[index]) --half;
  return half;
}

struct Span {
  std::uint64_t cycles = 0;
  std::uint64_t gained = 0;
  double PerCycle() const { return static_cast<double>(gained) / static_cast<double>(cycles); }
};

class Counts {
 public:
  Counts(std::span<const std::uint64_t> cycles, std::span<const std::uint64_t> live)
      : cycles_(cycles), peaks_(Peaks(live)), fell_(AreDoublings(cycles) && !std::is_sorted(live.begin(), live.end())) {}

  // The number of cycles that show that the count has stopped. A rise between two counts only may be the first one of a rare leak. A count
  // that was high by chance hides a leak below it for a while.
  std::uint64_t Needed(std::uint64_t reached) const {
    const bool once = FewestRises(peaks_) == 1;
    return reached * (once || fell_ ? kAfterOneRise : kAfterRises);
  }

  Span Between(std::size_t from, std::size_t to) const { return {cycles_[to] - cycles_[from], peaks_[to] - peaks_[from]}; }

  // True when the last two doublings added objects, and the last one was at least three quarters as fast as the one before. When less than
  // one object a cycle is added, the last one may be one short: a leak in every tenth cycle does not divide evenly. Not so when the cycles
  // before added more than the speed of the last doubling allows: such a count rises ever more slowly, as a logarithm does.
  bool GrowsOn() const {
    const std::size_t last = peaks_.size() - 1;
    const std::size_t half = HalfOf(cycles_, last);
    if (half == 0) return peaks_[last] > peaks_[last - 1];
    const Span late = Between(half, last);
    const std::size_t begin = HalfOf(cycles_, half);
    const Span before = Between(begin, half);
    if (late.gained == 0 || before.gained == 0) return false;
    const Span early = Between(0, begin);
    const bool steady = early.gained * late.cycles < (late.gained + 1) * early.cycles + late.cycles;
    const std::uint64_t allowed = steady && before.gained < before.cycles ? 1 : 0;
    return 4 * (late.gained + allowed) * before.cycles >= 3 * before.gained * late.cycles;
  }

  // The slowest and the fastest of the latest doublings that all added objects.
  void Slopes(Course* course) const {
    std::size_t end = peaks_.size() - 1;
    for (std::size_t begin = HalfOf(cycles_, end); end != 0 && Between(begin, end).gained != 0; begin = HalfOf(cycles_, end)) {
      const double slope = Between(begin, end).PerCycle();
      const bool first = course->most == 0;
      course->least = first ? slope : std::min(course->least, slope);
      course->most = std::max(course->most, slope);
      end = begin;
    }
  }

 private:
  std::span<const std::uint64_t> cycles_;
  std::vector<std::uint64_t> peaks_;
  bool fell_;
};

}  // namespace

Course JudgeCourse(std::span<const std::uint64_t> cycles, std::span<const std::uint64_t> live) {
  Course course;
  if (!Grew(cycles, live)) return course;
  const Counts counts(cycles, live);
  const auto peak = std::max_element(live.begin(), live.end());
  course.cycles = cycles.back();
  course.plateau = *peak;
  course.reached = cycles[static_cast<std::size_t>(peak - live.begin())];
  course.needed = counts.Needed(course.reached);
  course.trend = course.cycles >= course.needed ? Trend::Bounded : counts.GrowsOn() ? Trend::Growth : Trend::Undecided;
  if (course.trend == Trend::Growth) counts.Slopes(&course);
  return course;
}

Rule RuleOf(Trend trend) { return trend == Trend::Growth ? Rule::Growth : trend == Trend::Bounded ? Rule::Bounded : Rule::Undecided; }

Course JudgeEachCycle(std::span<const std::uint64_t> live) {
  std::vector<std::uint64_t> cycles(live.size());
  std::iota(cycles.begin(), cycles.end(), std::uint64_t{0});
  return JudgeCourse(cycles, live);
}

namespace {

std::vector<std::int64_t> Deltas(const std::vector<std::uint64_t>& blocks) {
  std::vector<std::int64_t> deltas;
  for (std::size_t k = 1; k < blocks.size(); ++k) {
    deltas.push_back(static_cast<std::int64_t>(blocks[k]) - static_cast<std::int64_t>(blocks[k - 1]));
  }
  return deltas;
}

// A table that fills or a pool that settles also rises, but ever more slowly. A leak does not slow down.
bool LevelsOff(const std::vector<std::int64_t>& deltas) {
  const std::size_t half = deltas.size() / 2;
  double first = 0;
  double last = 0;
  for (std::size_t k = 0; k < half; ++k) {
    first += static_cast<double>(deltas[k]);
    last += static_cast<double>(deltas[deltas.size() - 1 - k]);
  }
  return 4 * last < first;
}

std::uint64_t Range(const std::vector<std::uint64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least;
}

// The range of the differences between the blocks and their least-squares line.
double RangeAroundLine(const std::vector<std::uint64_t>& values) {
  const auto count = static_cast<double>(values.size());
  const double base = static_cast<double>(values.front());
  double sum = 0;
  double moment = 0;
  double squares = 0;
  const double middle = (count - 1) / 2;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double x = static_cast<double>(k) - middle;
    const double y = static_cast<double>(values[k]) - base;
    sum += y;
    moment += x * y;
    squares += x * x;
  }
  const double slope = moment / squares;
  double least = 0;
  double most = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double rest = static_cast<double>(values[k]) - base - sum / count - slope * (static_cast<double>(k) - middle);
    least = k == 0 ? rest : std::min(least, rest);
    most = k == 0 ? rest : std::max(most, rest);
  }
  return most - least;
}

std::uint64_t Noise(const std::vector<std::uint64_t>& blocks) {
  return std::max(Range(blocks), static_cast<std::uint64_t>(std::ceil(RangeAroundLine(blocks))));
}

bool Rises(const std::vector<std::int64_t>& deltas, std::int64_t above) {
  return std::all_of(deltas.begin(), deltas.end(), [above](std::int64_t delta) { return delta > above; }) && !LevelsOff(deltas);
}

std::uint64_t RoundedUp(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

// A leak of s per cycle lifts each block by s * L. The leak is missed when the noise drops by as much from one block to the next; three
// times the observed range allows for a noisier run. A lift below one quantum per block need not show in every block.
std::uint64_t BlockStep(std::uint64_t noise, std::uint64_t drift, std::uint64_t quantum) { return 3 * noise + drift + quantum; }

Growth JudgeBlocks(const std::vector<std::uint64_t>& blocks, std::uint64_t length, std::uint64_t quantum,
                   const std::vector<std::uint64_t>& control) {
  Growth growth;
  if (blocks.size() != kBlocks || length == 0) return growth;
  growth.enough = true;
  growth.cycles_per_block = length;
  std::vector<std::int64_t> deltas = Deltas(blocks);
  std::uint64_t control_noise = 0;
  if (!control.empty()) {
    const std::vector<std::int64_t> gained = Deltas(control);
    if (Rises(gained, 0)) {
      growth.drift = static_cast<std::uint64_t>(*std::max_element(gained.begin(), gained.end()));
      control_noise = static_cast<std::uint64_t>(std::ceil(RangeAroundLine(control)));
    } else {
      control_noise = Noise(control);
    }
  }
  growth.grows = Rises(deltas, static_cast<std::int64_t>(growth.drift));
  // Growth is no noise: for a growing meter only the distance from its line counts.
  const std::uint64_t own = growth.grows ? static_cast<std::uint64_t>(std::ceil(RangeAroundLine(blocks))) : Noise(blocks);
  growth.noise = std::max(own, control_noise);
  growth.detectable = std::max<std::uint64_t>(1, RoundedUp(BlockStep(growth.noise, growth.drift, quantum), length));
  std::nth_element(deltas.begin(), deltas.begin() + static_cast<std::ptrdiff_t>(deltas.size() / 2), deltas.end());
  growth.per_cycle = static_cast<double>(deltas[deltas.size() / 2]) / static_cast<double>(length);
  return growth;
}

}  // namespace

std::vector<std::uint64_t> BlockMedians(std::span<const std::uint64_t> readings) {
  const std::size_t length = readings.size() / kBlocks;
  std::vector<std::uint64_t> medians;
  if (length == 0) return medians;
  const std::size_t first = readings.size() - length * kBlocks;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const auto from = readings.begin() + static_cast<std::ptrdiff_t>(first + block * length);
    std::vector<std::uint64_t> values(from, from + static_cast<std::ptrdiff_t>(length));
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((length - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    medians.push_back(*middle);
  }
  return medians;
}

Growth JudgeGrowth(std::span<const std::uint64_t> readings, std::uint64_t quantum, std::span<const std::uint64_t> control) {
  return JudgeBlocks(BlockMedians(readings), readings.size() / kBlocks, quantum, BlockMedians(control));
}

Growth JudgeGrowthOfRuns(std::span<const std::uint64_t> readings, std::uint64_t step, std::uint64_t quantum,
                         std::span<const std::uint64_t> control) {
  const bool beside = control.size() == kBlocks;
  return JudgeBlocks({readings.begin(), readings.end()}, step, quantum,
                     beside ? std::vector<std::uint64_t>(control.begin(), control.end()) : std::vector<std::uint64_t>());
}

std::uint64_t CyclesFor(const Growth& seen, std::uint64_t quantum, std::uint64_t bound) {
  return kBlocks * std::max<std::uint64_t>(1, RoundedUp(BlockStep(seen.noise, seen.drift, quantum), bound));
}

FalseAlarms CountFalseAlarms(std::span<const std::uint64_t> control, std::uint64_t quantum) {
  FalseAlarms seen;
  for (std::size_t at = 0; at + kBlocks <= control.size(); at += kBlocks) {
    ++seen.windows;
    if (JudgeGrowth(control.subspan(at, kBlocks), quantum).grows) ++seen.alarms;
  }
  return seen;
}

}  // namespace cuaudit::harness
