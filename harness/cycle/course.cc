// SPDX-License-Identifier: MIT
#include "harness/cycle/course.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "harness/cycle/growth.h"

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
  // one object a cycle is added, the last one may be one short: a leak in every tenth cycle does not divide evenly.
  bool GrowsOn() const {
    const std::size_t last = peaks_.size() - 1;
    const std::size_t half = HalfOf(cycles_, last);
    if (half == 0) return peaks_[last] > peaks_[last - 1];
    const Span late = Between(half, last);
    const Span before = Between(HalfOf(cycles_, half), half);
    if (late.gained == 0 || before.gained == 0) return false;
    const std::uint64_t allowed = before.gained < before.cycles ? 1 : 0;
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

}  // namespace cuaudit::harness
