// SPDX-License-Identifier: MIT
// closed_descriptors.h: finds descriptors that a trial closed and that the closing code did not own, by comparing with the fault-free run.
//
//   Owns      its findings. Borrows ledgers and journals while it runs.
//
// The kernel gives the number of a closed descriptor to the next one that is opened. A close that comes twice therefore closes what
// somebody else has opened meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

// What a fault-free run does with descriptors. Places are keys (SiteKey).
struct UsualCloses {
  std::set<std::uint64_t> inherited;                           // numbers that it closes and that were open when it began
  std::set<std::uint64_t> places_of_unopened;                  // callers (CallerKey) that close these, or numbers that are not open
  std::set<std::uint64_t> opened;                              // places of opening
  std::map<std::uint64_t, std::set<std::uint64_t>> closed_at;  // places of opening, by the place of the close
};
[[nodiscard]] UsualCloses UsualClosesOf(const Evidence& fault_free);

// Findings of the rule deficit, one for each close. The host probes must have watched the whole of both runs.
[[nodiscard]] std::vector<TrialFinding> ClosedByWrongOwner(const UsualCloses& usual, const Evidence& trial);

}  // namespace cuaudit::harness
