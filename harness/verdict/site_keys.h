// SPDX-License-Identifier: MIT
// site_keys.h: SiteKey of many records of one journal: equal (call, stack) pairs are looked up once.
//
//   Owns      its table; borrows the journal.
//   Threads   one thread.
//   Errors    none. No site has the key 0.
//   Faults    makes no driver calls.
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
