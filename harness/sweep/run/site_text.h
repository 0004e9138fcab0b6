// SPDX-License-Identifier: MIT
// site_text.h: the text of sites in a journal, the call's name and the symbolised stack; and findings of trials with such texts.
//
//   Owns      the symboliser and the resolved places, by SiteKey, so that each place is resolved once for all trials. A place shares its text,
//             which never changes: a sweep of thousands of trials names a few hundred places with a dozen frames each.
//   Threads   one thread.
//   Errors    none. An unresolved frame stays an address in a module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "faults/journal/journal_view.h"
#include "harness/symbols/symbolizer.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"
#include "reports/run.h"

namespace cuaudit::harness {

class PlaceText {
 public:
  PlaceText() = default;
  PlaceText(report::Acquired words) : words_(std::make_shared<const report::Acquired>(std::move(words))) {}
  PlaceText(std::string call, std::vector<report::Frame> stack) : PlaceText(report::Acquired{std::move(call), std::move(stack)}) {}

  const report::Acquired& operator*() const noexcept { return words_ == nullptr ? Nowhere() : *words_; }
  const report::Acquired* operator->() const noexcept { return &**this; }
  operator const report::Acquired&() const noexcept { return **this; }

 private:
  static const report::Acquired& Nowhere() noexcept {
    static const report::Acquired nowhere;
    return nowhere;
  }

  std::shared_ptr<const report::Acquired> words_;
};

// "cuMemAlloc" for every version, "malloc" or "pthread_mutex_init" for host events; empty for an unknown place.
std::string CallName(const Site& site);

// The calls and refusable allocations of the program by SiteKey, of each the first.
std::unordered_map<std::uint64_t, Site> SitesOf(const Evidence& run);

class SiteTexts {
 public:
  // Notes of which objects that are left the CUDA runtime is the owner, not the program (Object::library_kept).
  void MarkRuntimeOwned(const faults::JournalView& journal, Ledger* ledger);

  // As Symbolizer says.
  void LookIn(const std::string& directory) { symbolizer_.LookIn(directory); }
  std::vector<std::pair<std::string, std::string>> NotFound() const { return symbolizer_.NotFound(); }

  const PlaceText& Text(const faults::JournalView& journal, const Site& site, std::uint64_t key);  // `key`: SiteKey
  const PlaceText& Text(const faults::JournalView& journal, const Site& site);

 private:
  Symbolizer symbolizer_;
  std::unordered_map<std::uint64_t, PlaceText> known_;
  const PlaceText nowhere_{};
};

// A finding of a trial, with its places in words.
struct TrialFindingText {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t acquired_key = 0;
  std::uint64_t where_key = 0;
  std::uint64_t other_key = 0;
  PlaceText acquired;
  PlaceText where;
  PlaceText other;
  PlaceText released;  // where the fault-free run releases what is lost, or puts back what is left changed; empty when it does not
  std::optional<report::Blame> blame;  // the function that left without the release, or made the wrong call
  std::string meter;                   // for the host: what grew, when a meter saw it and no object is known
  std::string detail;                  // what the title does not say; may be empty
  std::string apart;                   // tells two entries apart when kind and place are equal
  std::int64_t least = -1;             // number of the SweepEngine::Shrinking that the finding belongs to; -1: its faults cannot be fewer
};

// "stream"; empty for a finding without an object.
inline std::string_view KindName(const TrialFindingText& text) {
  if (!text.meter.empty()) return text.meter;
  return text.kind == driver::Kind::None ? std::string_view() : driver::Name(text.kind);
}

std::vector<TrialFindingText> Texts(const std::vector<TrialFinding>& findings, const faults::JournalView& journal, SiteTexts* sites);

}  // namespace cuaudit::harness
