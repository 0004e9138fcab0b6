// SPDX-License-Identifier: MIT
#include "harness/verdict/away_spans.h"

#include <algorithm>

#include "harness/verdict/function_frames.h"

namespace cuaudit::harness {

void DropBefore(std::size_t call, std::vector<Away>* all) {
  std::erase_if(*all, [call](const Away& one) { return one.until <= call; });
}

std::size_t CallersFrom(const Evidence& run, std::size_t call, std::size_t level) {
  const std::size_t frames = run.journal->Stack(run.record(run.facts().calls[call]).stack).size();
  return level < frames ? frames - level : 0;
}

std::size_t DeepestAway(const Evidence& run, std::vector<Away>* all, bool only_from_none) {
  std::size_t deepest = 0;
  for (Away& away : *all) {
    if (away.from == kNoCall || (only_from_none && !away.from_none)) return kNoCall;
    if (!away.callers) {
      const std::size_t level = SharedLevel(run, away.from, away.until - 1);
      away.callers = level == kNoLevel ? kNoCall : CallersFrom(run, away.from, level);
    }
    deepest = std::max(deepest, *away.callers);
  }
  return deepest;
}

}  // namespace cuaudit::harness
