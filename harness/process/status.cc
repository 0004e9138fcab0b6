// SPDX-License-Identifier: MIT
#include "harness/process/status.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace cuaudit::harness {
namespace {

constexpr std::size_t kLongest = 64;

std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t before = row[0];  // of the row above, one column to the left
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = before + (a[i] == b[j] ? 0 : 1);
      before = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Nearest(std::string_view word, std::span<const std::string> known) {
  if (word.size() > kLongest) return {};
  std::string nearest;
  std::size_t least = 0;
  for (const std::string& one : known) {
    const std::size_t distance = Distance(word, one);
    if (distance > std::max(word.size(), one.size()) / 2 || (!nearest.empty() && distance >= least)) continue;
    nearest = one;
    least = distance;
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? nearest : ", did you mean " + nearest + "?";
}

}  // namespace cuaudit::harness
