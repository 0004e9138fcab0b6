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

}  // namespace cuaudit::harness
