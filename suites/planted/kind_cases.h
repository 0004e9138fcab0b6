// SPDX-License-Identifier: MIT
// kind_cases.h: for every kind that a call acquires, the shortest lifecycle of one object.
//
//   Owns      a constant table.
//   Threads   safe everywhere; no state.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0.
#pragma once

#include <vector>

#include "faults/driver/kinds.h"
#include "suites/unit/ledger/trace.h"

namespace cuaudit::testing {

struct KindCase {
  driver::Kind kind;
  void (*acquire)(Trace&);
  void (*release)(Trace&);
};

const std::vector<KindCase>& KindCases();

// What KindCases acquires and releases where the handle is the program's to see.
inline constexpr std::uint64_t kCaseHandle = 0x7f00'0000'1000;

// Another object of the same kind, `number` telling it from the others; references of one thing have no handles of their own.
void AcquireAnother(Trace& trace, const KindCase& one, std::uint64_t number);

// Its release is no driver call, so nobody can refuse it.
bool IsHostKind(driver::Kind kind);

// An entry left on a context stack is a violation, with a rule of its own, and no leak.
inline bool IsLeakKind(driver::Kind kind) { return kind != driver::Kind::ContextStackEntry; }

// Kinds that some entry point or host call acquires and that do not merely die with their parent.
std::vector<driver::Kind> LeakableKinds();

}  // namespace cuaudit::testing
