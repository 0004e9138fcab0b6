// SPDX-License-Identifier: MIT
// site_keys.h: SiteKey with a table: each pair of call and stack of a journal is computed once.
//
//   Owns      its table. Borrows the journal.
//   Threads   one thread.
//
// No site has the key 0.
#pragma once

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

}  // namespace cuaudit::harness
