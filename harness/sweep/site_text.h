// SPDX-License-Identifier: MIT
// site_text.h: sites of a journal in words: the call's name and the symbolised stack, each place resolved once.
//
//   Owns      the symboliser and what it has resolved so far, by SiteKey, so that a thousand trials ask for each place once.
//   Threads   one thread.
//   Errors    none; what cannot be resolved stays an address in a module.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "faults/journal/journal_view.h"
#include "harness/sweep/place_text.h"
#include "harness/symbols/symbolizer.h"
#include "harness/verdict/judge.h"
#include "reports/run.h"

namespace cuaudit::harness {

// "cuMemAlloc" whatever its version, "malloc" or "pthread_mutex_init" for host events; empty for an unknown place.
std::string CallName(const Site& site);

// Where the program makes a call, or an allocation that can be refused, from the place with that key; record_kind Empty where nowhere.
Site FindSite(const Evidence& run, std::uint64_t key);

class SiteTexts {
 public:
  const PlaceText& Text(const faults::JournalView& journal, const Site& site, std::uint64_t key);

 private:
  Symbolizer symbolizer_;
  std::unordered_map<std::uint64_t, PlaceText> known_;
  const PlaceText nowhere_{};
};

}  // namespace cuaudit::harness
