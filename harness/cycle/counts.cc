// SPDX-License-Identifier: MIT
#include "harness/cycle/counts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace cuaudit::harness {
namespace {

constexpr std::string_view kCount = "{n}";

}  // namespace

Result<std::vector<std::uint64_t>> ParseCounts(std::string_view text) {
  const std::string whole(text);
  const auto wrong = [&] {
    return Status(Exit::Usage, "--n: '" + whole + "': expected at least two increasing counts from 1, such as 1,10");
  };
  std::vector<std::uint64_t> counts;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    std::uint64_t value = 0;
    const std::from_chars_result parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool number = parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
    if (!number || value == 0 || (!counts.empty() && value <= counts.back())) return wrong();
    counts.push_back(value);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  if (counts.size() < 2) return wrong();
  return counts;
}

bool TakesCount(std::span<const std::string> command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) { return word.find(kCount) != std::string::npos; });
}

std::vector<std::string> WithCount(std::span<const std::string> command, std::uint64_t count) {
  const std::string number = std::to_string(count);
  std::vector<std::string> words(command.begin(), command.end());
  for (std::string& word : words) {
    for (std::size_t at = word.find(kCount); at != std::string::npos; at = word.find(kCount, at + number.size())) {
      word.replace(at, kCount.size(), number);
    }
  }
  return words;
}

}  // namespace cuaudit::harness
