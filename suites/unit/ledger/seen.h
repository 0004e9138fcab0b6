// SPDX-License-Identifier: MIT
// seen.h: what the harness said while a test asked it: the evidence of the kill matrix (scripts/gen_kill_matrix.py).
//
//   Owns      one set, of the test that runs.
//   Threads   one thread.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours.
//
// Left, Wrong, Judge and the helpers of suites/planted note what they answer; ledgers and snapshots that a test looks into by itself leave
// no trace here.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace cuaudit::testing {

using Sightings = std::set<std::pair<std::string, std::string>>;  // rule and kind ("none" for rules that are about no resource)

inline Sightings& Seen() {
  static Sightings seen;
  return seen;
}

inline void Saw(std::string_view rule, std::string_view kind) { Seen().emplace(rule, kind); }

}  // namespace cuaudit::testing
