// SPDX-License-Identifier: MIT
#include "harness/verdict/evidence/evidence.h"

#include <algorithm>

namespace cuaudit::harness {

using faults::Record;

namespace {

// The indices of this process's own records. Records from before the fork come first in the journal.
std::span<const std::uint32_t> Own(const std::vector<std::uint32_t>& all, const faults::JournalView& journal) {
  const std::size_t shared = journal.records().size() - journal.own_records().size();
  return {std::partition_point(all.begin(), all.end(), [shared](std::uint32_t index) { return index < shared; }), all.end()};
}

}  // namespace

std::span<const std::uint32_t> Evidence::own_calls() const noexcept { return Own(ledger->facts.calls, *journal); }

std::span<const std::uint32_t> Evidence::own_marks() const noexcept { return Own(ledger->facts.marks, *journal); }

std::span<const std::uint32_t> Evidence::own_closes() const noexcept { return Own(ledger->facts.closes, *journal); }

const Record* Evidence::call_at(std::uint64_t begin) const noexcept {
  const std::vector<std::uint32_t>& calls = ledger->facts.calls;
  const auto found = std::lower_bound(calls.begin(), calls.end(), begin,
                                      [this](std::uint32_t index, std::uint64_t ticket) { return record(index).begin < ticket; });
  return found != calls.end() && record(*found).begin == begin ? &record(*found) : nullptr;
}

const Record* Evidence::hit(std::size_t fault) const noexcept {
  const auto& hits = ledger->facts.hits;
  return fault < hits.size() && hits[fault].begin != 0 ? &record(hits[fault].record) : nullptr;
}

const Record* Evidence::first_hit() const noexcept {
  const Hit* first = nullptr;
  for (const Hit& one : ledger->facts.hits) {
    if (one.begin != 0 && (first == nullptr || one.begin < first->begin)) first = &one;
  }
  return first == nullptr ? nullptr : &record(first->record);
}

const Record* Evidence::last_hit() const noexcept {
  const Hit* last = nullptr;
  for (const Hit& one : ledger->facts.hits) {
    if (one.begin != 0 && (last == nullptr || one.begin > last->begin)) last = &one;
  }
  return last == nullptr ? nullptr : &record(last->record);
}

bool Evidence::saw_host() const noexcept {
  return ledger->host_seen != 0 && ledger->host_unseen == 0 && (flags() & faults::kHostStopped) == 0;
}

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
