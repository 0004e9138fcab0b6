// SPDX-License-Identifier: MIT
// finding.h: one broken rule of one trial, with its places.
#pragma once

#include <cstdint>

#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// One broken rule. All objects of one kind, acquire site and state are one finding.
struct TrialFinding {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Site acquired;                   // record_kind is Empty when unknown
  Site where;                      // the call where a violation, crash or hang showed; else Empty
  Site other;                      // the call that it collides with; Empty when there is none
  std::uint64_t acquired_key = 0;  // SiteKey of acquired; likewise the next two
  std::uint64_t where_key = 0;
  std::uint64_t other_key = 0;
  Details detail;             // what the title of the rule does not say; may be empty
  bool refused_wait = false;  // a proved misuse that exists only because the plan refused a wait
  bool believed = false;      // the program was told that an earlier release had failed, and may have tried it again (Violation)
};

}  // namespace cuaudit::harness
