// SPDX-License-Identifier: MIT
// seen.h: notes what the harness found while a test ran: the evidence for the kill matrix (scripts/gen_kill_matrix.py).
//
// Left, Wrong, Judge and the helpers of suites/planted note their results. Ledgers and snapshots that a test reads itself are not noted.
// There is one set, for the current test; used from one thread.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuaudit::testing {

using Sightings = std::set<std::pair<std::string, std::string>>;  // rule and kind ("none" for rules that are about no resource)

inline Sightings& Seen() {
  static Sightings seen;
  return seen;
}

// Number of defects of each result that the current row was given, where there was one.
inline std::vector<std::size_t>& SeenDefects() {
  static std::vector<std::size_t> seen;
  return seen;
}

inline void SawDefects(std::size_t count) {
  if (count != 0) SeenDefects().push_back(count);
}

inline void Saw(std::string_view rule, std::string_view kind) { Seen().emplace(rule, kind); }

}  // namespace cuaudit::testing
