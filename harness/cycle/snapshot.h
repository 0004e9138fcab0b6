// SPDX-License-Identifier: MIT
// snapshot.h: what is alive at one moment of a run, by kind and acquire site, and how two such moments differ.
//
//   Owns      its texts.
//   Threads   values; no shared state.
//   Units     objects, bytes; growth per cycle.
//   Faults    makes no driver calls.
//
// An object that died with its context counts as alive: nobody released it. A mutex whose memory was freed counts as lost, too.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/sweep/observation.h"
#include "harness/sweep/site_text.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct LiveSite {
  driver::Kind kind{};
  std::uint64_t key = 0;  // SiteKey of the acquiring call
  report::Acquired acquired;
  std::uint64_t live = 0;
  std::uint64_t bytes = 0;
  bool library_kept = false;  // Object::library_kept: grows only when it does so in each cycle
};

struct ViolationSite {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t acquired_key = 0;
  std::uint64_t where_key = 0;
  report::Acquired acquired;
  report::Acquired where;
  std::uint64_t count = 0;
  report::Acquired other{};  // what it collides with
  std::uint64_t other_key = 0;
};

struct Snapshot {
  std::uint64_t cycles = 0;  // how many had run
  std::vector<LiveSite> live;
  std::vector<ViolationSite> violations;
};

inline constexpr std::uint64_t kAtExit = ~std::uint64_t{0};

// The moment of ticket `until` of the journal's clock; kAtExit for the end of the run.
Snapshot TakeSnapshot(const Observation& run, std::uint64_t cycles, std::uint64_t until, SiteTexts* sites);

// Fills cycle_counts, cycle_rows, per_cycle and findings from snapshots in increasing order of cycles, at least two.
void CompareSnapshots(std::span<const Snapshot> snapshots, const std::string& reproduce, report::Run* run);

}  // namespace cuaudit::harness
