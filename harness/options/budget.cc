// SPDX-License-Identifier: MIT
#include "harness/options/budget.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace cuaudit::harness {

Result<std::optional<std::chrono::seconds>> ParseBudget(const std::string& text) {
  if (text.empty()) return std::optional<std::chrono::seconds>();
  constexpr std::pair<std::string_view, std::uint32_t> kUnits[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
  constexpr std::uint32_t kMost = 1000000;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, seconds] : kUnits) {
    if (error == std::errc() && unit == name && number != 0 && number <= kMost) {
      return std::optional(std::chrono::seconds(std::uint64_t{number} * seconds));
    }
  }
  return Status(Exit::Usage, "--budget: '" + text + "': expected a time from 1 to " + std::to_string(kMost) + " with s, min or h: 10min");
}

}  // namespace cuaudit::harness
