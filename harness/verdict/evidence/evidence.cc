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

std::size_t Evidence::first_call_from(std::uint64_t ticket) const noexcept {
  const std::vector<std::uint32_t>& calls = ledger->facts.calls;
  const auto found = std::partition_point(calls.begin(), calls.end(), [&](std::uint32_t index) { return record(index).begin < ticket; });
  return static_cast<std::size_t>(found - calls.begin());
}

const Record* Evidence::call_at(std::uint64_t begin) const noexcept {
  const std::size_t number = first_call_from(begin);
  return number != facts().calls.size() && call(number).begin == begin ? &call(number) : nullptr;
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
  const auto& hits = ledger->facts.hits;
  const Hit& last = *std::max_element(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.begin < b.begin; });
  return last.begin == 0 ? nullptr : &record(last.record);
}

bool Evidence::saw_host() const noexcept {
  return ledger->host_seen != 0 && ledger->host_unseen == 0 && (flags() & faults::kHostStopped) == 0;
}

bool IsWithin(const Evidence& run, const Record& record, std::uint64_t frame) {
  const std::span<const std::uint64_t> frames = run.journal->Stack(record.stack);
  return !frames.empty() && std::find(frames.begin() + 1, frames.end(), frame) != frames.end();
}

std::size_t SharedLevel(const Evidence& run, std::size_t first, std::size_t last) {
  const Record& from = run.call(first);
  const std::span<const std::uint64_t> frames = run.journal->Stack(from.stack);
  if (run.call(last).pid != from.pid || run.call(last).tid != from.tid) return kNoLevel;
  std::size_t level = 1;
  for (std::size_t step = first + 1; step <= last && level < frames.size(); ++step) {
    const Record& record = run.call(step);
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
