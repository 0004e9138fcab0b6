// SPDX-License-Identifier: MIT
// snapshot.h: what is alive at one moment of a run, by kind and acquire site, and how two moments differ.
//
//   Units     objects, bytes; growth per cycle.
//
// An object that ended with its context counts as alive, because the program did not release it. So does a mutex that was never destroyed
// and whose memory was freed or initialised again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct LiveSite {
  driver::Kind kind{};
  std::uint64_t key = 0;  // SiteKey of the acquiring call
  report::Acquired acquired;
  std::uint64_t live = 0;
  std::uint64_t bytes = 0;
  bool library_kept = false;  // Object::library_kept: grows only when each cycle adds one
};

// The live objects of one kind and place, with one count per snapshot.
struct LiveRow {
  LiveSite site;  // without its counts
  std::vector<std::uint64_t> live;
  std::vector<std::uint64_t> bytes;
};

struct ViolationSite {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t acquired_key = 0;
  std::uint64_t where_key = 0;
  report::Acquired acquired = {};
  report::Acquired where = {};
  std::uint64_t count = 0;
  report::Acquired other = {};  // the call that it collides with
  std::uint64_t other_key = 0;
};

struct Snapshot {
  std::uint64_t cycles = 0;  // cycles finished at that moment
  std::vector<LiveSite> live;
  std::vector<ViolationSite> violations;
};

inline constexpr std::uint64_t kInsideTheDriver = 1;  // LiveSite::key of all that the driver took for itself
inline constexpr std::uint64_t kAtExit = ~std::uint64_t{0};

// The moment of ticket `until` of the journal's clock; kAtExit for the end of the run.
Snapshot TakeSnapshot(const Observation& run, std::uint64_t cycles, std::uint64_t until, SiteTexts* sites);

// Snapshots at the ends of the marked cycles of a journal: of all, or of about kSpread of them, evenly apart, with the first and the last.
enum class Moments : std::uint8_t { EachCycle, Spread };
inline constexpr std::size_t kSpread = 64;
std::vector<Snapshot> MarkedSnapshots(const Observation& run, Moments moments, SiteTexts* sites);

// By kind, and within a kind in the order in which the places were first seen.
std::vector<LiveRow> LiveRows(std::span<const Snapshot> snapshots);

// The next number of cycles to run, when a count grew and may be a cache that fills: twice the last number, at most `most`. 0: each count
// is decided, or `most` is reached.
std::uint64_t NextCount(std::span<const Snapshot> snapshots, std::uint64_t most);

// Fills cycle_counts, cycle_rows, per_cycle, findings, notes and message.undecided. Takes at least two snapshots in increasing order of
// cycles.
void CompareSnapshots(std::span<const Snapshot> snapshots, const std::string& reproduce, report::Run* run);

}  // namespace cuaudit::harness
