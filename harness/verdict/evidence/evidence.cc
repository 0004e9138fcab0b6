// SPDX-License-Identifier: MIT
#include "harness/verdict/evidence/evidence.h"

#include <algorithm>

namespace cuaudit::harness {
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

const faults::Record* Evidence::call_at(std::uint64_t begin) const noexcept {
  const std::vector<std::uint32_t>& calls = ledger->facts.calls;
  const auto found = std::lower_bound(calls.begin(), calls.end(), begin,
                                      [this](std::uint32_t index, std::uint64_t ticket) { return record(index).begin < ticket; });
  return found != calls.end() && record(*found).begin == begin ? &record(*found) : nullptr;
}

const faults::Record* Evidence::hit(std::size_t fault) const noexcept {
  const auto& hits = ledger->facts.hits;
  return fault < hits.size() && hits[fault].begin != 0 ? &record(hits[fault].record) : nullptr;
}

const faults::Record* Evidence::first_hit() const noexcept {
  const Hit* first = nullptr;
  for (const Hit& one : ledger->facts.hits) {
    if (one.begin != 0 && (first == nullptr || one.begin < first->begin)) first = &one;
  }
  return first == nullptr ? nullptr : &record(first->record);
}

const faults::Record* Evidence::last_hit() const noexcept {
  const Hit* last = nullptr;
  for (const Hit& one : ledger->facts.hits) {
    if (one.begin != 0 && (last == nullptr || one.begin > last->begin)) last = &one;
  }
  return last == nullptr ? nullptr : &record(last->record);
}

bool Evidence::saw_host() const noexcept {
  return ledger->host_seen != 0 && ledger->host_unseen == 0 && (flags() & faults::kHostStopped) == 0;
}

}  // namespace cuaudit::harness
