// SPDX-License-Identifier: MIT
#include "reports/course_words.h"

#include <fmt/format.h>

#include <cstddef>

namespace cuaudit::report {
namespace {

constexpr std::string_view kTrends[] = {"steady", "growth", "bounded", "undecided"};

// "0.98", "1"
std::string Rate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  return text.ends_with(".00") ? text.substr(0, text.size() - 3) : text;
}

}  // namespace

std::string_view Name(Trend trend) { return kTrends[static_cast<std::size_t>(trend)]; }

std::string Describe(const Course& course) {
  const std::string least = Rate(course.least);
  const std::string most = Rate(course.most);
  switch (course.trend) {
    case Trend::Steady:
      return {};
    case Trend::Growth:
      return fmt::format("{}{} more a cycle, up to {} cycles", least == most ? "" : least + " to ", most, course.cycles);
    case Trend::Bounded:
      return fmt::format("{} after {} cycles, no more after {}", course.plateau, course.reached, course.cycles);
    case Trend::Undecided:
      if (course.reached == course.cycles)
        return fmt::format("{} after {} cycles, not steadily: {} cycles would tell", course.plateau, course.reached, course.needed);
      return fmt::format("{} after {} cycles, no more after {}: {} cycles would tell", course.plateau, course.reached, course.cycles,
                         course.needed);
  }
  return {};
}

std::string Describe(const Undecided& undecided) {
  return fmt::format("{} grew, and these cycles do not tell a leak from a cache that fills: {} cycles would",
                     undecided.places == 1 ? std::string("1 place") : fmt::format("{} places", undecided.places), undecided.cycles);
}

}  // namespace cuaudit::report
