// SPDX-License-Identifier: MIT
// site_keys.h: SiteKey with a table: each pair of call and stack of a journal is computed once. CallerDistance compares call stacks.
//
//   Owns      its table. Borrows the journal.
//   Threads   one thread.
//
// No site has the key 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

class SiteKeys {
 public:
  explicit SiteKeys(const faults::JournalView& journal) : journal_(&journal) {}
  std::uint64_t Of(const Site& site);

 private:
  const faults::JournalView* journal_;
  std::unordered_map<std::uint64_t, std::uint64_t> keys_;
};

// How far out the innermost caller is that both stacks of one run have in common: 1 for the function that made the call `from`. It is the
// number of frames when they have none. Frames are compared wherever they are, because a deep stack has lost its outermost ones.
[[nodiscard]] std::size_t CallerDistance(const faults::JournalView& journal, std::uint32_t from, std::uint32_t to);

}  // namespace cuaudit::harness
