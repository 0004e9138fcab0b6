// SPDX-License-Identifier: MIT
// kind_cases.h: for every kind that a call acquires, the shortest lifecycle of one object, and a call that uses it.
#pragma once

#include <optional>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/driver/kinds.h"
#include "faults/driver/shape.h"
#include "harness/ledger/arguments.h"
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

// For each kind above, a call that uses an object of the kind without releasing it. The calls come from faults/driver/effects.def and from
// the parameter types.

struct Use {
  const KindCase* one;
  driver::CallId call;
  int argument;

  void Make(Trace& trace) const { trace.Call(call).In(argument, kCaseHandle); }
};

// The first call in the table that has only this effect and takes a handle of the kind's family.
inline std::optional<Use> UseOf(const KindCase& one, driver::Effect effect) {
  const driver::Family family =
      driver::FamilyOf(one.kind) == driver::Family::Mapping ? driver::Family::Pointer : driver::FamilyOf(one.kind);
  for (std::size_t i = 0; i < driver::kCallCount; ++i) {
    const auto call = static_cast<driver::CallId>(i);
    const driver::Shape& shape = driver::ShapeOf(call);
    if (driver::EffectOf(driver::BaseOf(call)).effect != effect) continue;
    for (std::size_t argument = 0; argument < shape.count && argument < faults::kRecordArguments; ++argument) {
      if (shape.parameter[argument].output || harness::ArgumentFamily(call, argument) != family) continue;
      return Use{&one, call, static_cast<int>(argument)};
    }
  }
  return std::nullopt;
}

// Left out are kinds that no call takes by handle, and kinds whose handles are given out again in ways that leave no record.
inline std::vector<Use> Uses() {
  std::vector<Use> uses;
  for (const KindCase& one : KindCases()) {
    // Contexts follow the rules of the context stack, user objects count references, and registered pages belong to the host.
    const bool own = one.kind == driver::Kind::PrimaryContext || one.kind == driver::Kind::ContextStackEntry ||
                     one.kind == driver::Kind::UserObject || one.kind == driver::Kind::HostRegistration;
    if (own || IsHostKind(one.kind)) continue;
    std::optional<Use> use = UseOf(one, driver::Effect::Uses);
    if (!use) use = UseOf(one, driver::Effect::Queries);
    if (use) uses.push_back(*use);
  }
  return uses;
}

}  // namespace cuaudit::testing
