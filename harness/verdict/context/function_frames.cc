// SPDX-License-Identifier: MIT
#include "harness/verdict/context/function_frames.h"

#include <algorithm>
#include <span>
#include <vector>

namespace cuaudit::harness {

using faults::Record;

bool IsWithin(const Evidence& run, const Record& record, std::uint64_t frame) {
  const std::span<const std::uint64_t> frames = run.journal->Stack(record.stack);
  return !frames.empty() && std::find(frames.begin() + 1, frames.end(), frame) != frames.end();
}

std::size_t SharedLevel(const Evidence& run, std::size_t first, std::size_t last) {
  const std::vector<std::uint32_t>& calls = run.facts().calls;
  const Record& from = run.record(calls[first]);
  const std::span<const std::uint64_t> frames = run.journal->Stack(from.stack);
  if (run.record(calls[last]).pid != from.pid || run.record(calls[last]).tid != from.tid) return kNoLevel;
  std::size_t level = 1;
  for (std::size_t step = first + 1; step <= last && level < frames.size(); ++step) {
    const Record& record = run.record(calls[step]);
    if (record.pid != from.pid || record.tid != from.tid || record.stack == 0) continue;
    while (level < frames.size() && !IsWithin(run, record, frames[level])) ++level;
  }
  return level < frames.size() ? level : kNoLevel;
}

const Record* EndOfCycle(const Evidence& run, const Record& call) {
  for (const std::uint32_t index : run.facts().marks) {
    const Record& mark = run.record(index);
    if (IsMark(mark, faults::MarkKind::CycleEnd) && mark.cycle == call.cycle && mark.pid == call.pid && mark.tid == call.tid) return &mark;
  }
  return nullptr;
}

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
