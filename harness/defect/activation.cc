// SPDX-License-Identifier: MIT
#include "harness/defect/activation.h"

#include <algorithm>

namespace cuaudit::harness {
// An inlined function has the line of the call that was inlined, and the address of the instruction: only the line is comparable.
bool SamePlace(const report::Frame& a, const report::Frame& b) {
  if (!SameFunction(a, b)) return false;
  return a.line != 0 && b.line != 0 ? a.line == b.line && a.file == b.file : a.offset == b.offset;
}

bool SameFunction(const report::Frame& a, const report::Frame& b) {
  if (a.module != b.module || a.function != b.function) return false;
  if (!a.function.empty()) return true;
  return a.start != 0 && b.start != 0 ? a.start == b.start : a.offset == b.offset;
}

std::optional<Common> CommonActivation(const Stack& a, const Stack& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (!SameFunction(a[i], b[j])) continue;
      const std::size_t outer = std::min(a.size() - i, b.size() - j) - 1;
      const auto from = a.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      if (std::equal(from, from + static_cast<std::ptrdiff_t>(outer), b.begin() + static_cast<std::ptrdiff_t>(j) + 1, SamePlace))
        return Common{i, j};
    }
  }
  return std::nullopt;
}

std::size_t RunningSince(const Stack& earlier, const Stack& later) {
  const std::optional<Common> common = CommonActivation(earlier, later);
  if (!common) return later.size();
  std::size_t at = common->in_b;
  for (std::size_t in_a = common->in_a; in_a < earlier.size() && at < later.size(); ++in_a, ++at) {
    const report::Frame& before = earlier[in_a];
    const report::Frame& now = later[at];
    const bool back = before.offset == now.offset || (now.line != 0 && now.line < before.line);
    if (!before.once || !back || now.offset == 0) break;
  }
  return at;
}

}  // namespace cuaudit::harness
