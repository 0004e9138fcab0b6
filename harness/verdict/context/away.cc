// SPDX-License-Identifier: MIT
#include "harness/verdict/context/away.h"

#include <algorithm>
#include <span>
#include <vector>

namespace cuaudit::harness {

void DropBefore(std::size_t call, std::vector<Away>* all) {
  std::erase_if(*all, [call](const Away& one) { return one.until <= call; });
}

std::size_t InnermostAway(const Evidence& run, std::size_t call, std::vector<Away>* all, bool only_from_none) {
  const auto stack = [&run](std::size_t of) { return run.journal->Stack(run.record(run.facts().calls[of]).stack); };
  const std::span<const std::uint64_t> frames = stack(call);
  std::size_t innermost = frames.size();
  for (Away& away : *all) {
    if (away.from == kNoCall || (only_from_none && !away.from_none)) return 0;
    if (!away.frame) {
      const std::size_t level = SharedLevel(run, away.from, away.until - 1);
      away.frame = level == kNoLevel ? 0 : stack(away.from)[level];
    }
    // A function that calls itself is found where it runs last: what it changes then counts as its own.
    const auto found = frames.empty() ? frames.end() : std::find(frames.begin() + 1, frames.end(), *away.frame);
    if (*away.frame == 0 || found == frames.end()) return 0;
    innermost = std::min(innermost, static_cast<std::size_t>(found - frames.begin()));
  }
  return innermost;
}

}  // namespace cuaudit::harness
