// SPDX-License-Identifier: MIT
#include "harness/verdict/context/returns.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "harness/verdict/context/away.h"

namespace cuaudit::harness {

using faults::Record;

std::size_t Returns::Outside(const Record& call, std::size_t level, std::size_t from) {
  const std::span<const std::uint64_t> frames = run_.journal->Stack(call.stack);
  if (level >= frames.size()) return kNoCall;
  std::map<std::size_t, std::size_t>& known = outside_[{call.pid, call.tid, frames[level]}];
  const auto next = known.upper_bound(from);
  if (next != known.begin() && std::prev(next)->second >= from) return std::prev(next)->second;
  const std::vector<std::uint32_t>& calls = run_.facts().calls;
  std::size_t found = kNoCall;
  for (std::size_t step = from; found == kNoCall && step < calls.size(); ++step) {
    const Record& record = run_.record(calls[step]);
    if (record.pid != call.pid || record.tid != call.tid || record.stack == 0) continue;
    if (!IsWithin(run_, record, frames[level])) found = step;
  }
  return known[from] = found;
}

std::size_t Returns::SharedBy(std::size_t first, std::size_t last) {
  const Record& from = run_.record(run_.facts().calls[first]);
  const Record& to = run_.record(run_.facts().calls[last]);
  const std::size_t frames = run_.journal->Stack(from.stack).size();
  if (to.pid != from.pid || to.tid != from.tid) return kNoLevel;
  for (std::size_t level = 1; level < frames; ++level) {
    const std::size_t outside = Outside(from, level, first + 1);
    if (outside == kNoCall || outside > last) return level;
  }
  return kNoLevel;
}

std::size_t Returns::AfterThread(const Record& call) {
  const auto [known, is_new] = after_.try_emplace({call.pid, call.tid}, kNoCall);
  const ProcessFacts* const process = run_.facts().Process(call.pid);
  if (!is_new || process == nullptr || process->exit == 0) return known->second;
  if (std::count(process->running.begin(), process->running.end(), call.tid) != 0) return kNoCall;
  const std::span<const Record> records = run_.journal->records();
  if (std::any_of(records.begin(), records.end(), [&](const Record& one) { return one.begin == process->exit && one.tid == call.tid; }))
    return kNoCall;
  const std::vector<std::uint32_t>& calls = run_.facts().calls;
  const auto is_its = [&](std::uint32_t index) { return run_.record(index).pid == call.pid && run_.record(index).tid == call.tid; };
  return known->second = static_cast<std::size_t>(std::find_if(calls.rbegin(), calls.rend(), is_its).base() - calls.begin());
}

}  // namespace cuaudit::harness
