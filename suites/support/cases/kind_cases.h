// SPDX-License-Identifier: MIT
// kind_cases.h: for every kind that a call acquires, the shortest lifecycle of one object.
#pragma once

#include <vector>

#include "faults/driver/kinds.h"
#include "suites/support/trace.h"

namespace cuaudit::testing {

struct KindCase {
  driver::Kind kind;
  void (*acquire)(Trace&);
  void (*release)(Trace&);
};

const std::vector<KindCase>& KindCases();

// Handle that KindCases acquires and releases, for kinds whose handle the program sees.
inline constexpr std::uint64_t kCaseHandle = 0x7f00'0000'1000;

// Acquires another object of the same kind; `number` makes its handle unique. References to one object share a handle.
void AcquireAnother(Trace& trace, const KindCase& one, std::uint64_t number);

// True for host kinds: their release is no driver call, so it cannot be refused.
bool IsHostKind(driver::Kind kind);

// An entry left on a context stack is a violation, with a rule of its own, and no leak.
inline bool IsLeakKind(driver::Kind kind) { return kind != driver::Kind::ContextStackEntry; }

// Kinds that some entry point or host call acquires and that do not merely die with their parent.
std::vector<driver::Kind> LeakableKinds();

}  // namespace cuaudit::testing
