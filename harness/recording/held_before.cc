// SPDX-License-Identifier: MIT
#include "harness/recording/held_before.h"

#include <unordered_set>

#include "faults/driver/effects.h"
#include "harness/ledger/rules.h"

namespace cuaudit::harness {

std::map<driver::Kind, std::uint64_t> HeldBefore(const faults::JournalView& journal, const Ledger& ledger) {
  std::unordered_set<std::uint64_t> settled;
  for (const Object& object : ledger.objects) settled.insert(object.released.begin);
  std::map<driver::Kind, std::uint64_t> held;
  for (const std::uint32_t index : ledger.facts.calls) {
    const faults::Record& record = journal.records()[index];
    const driver::EffectRow& row = driver::EffectOf(driver::BaseOf(static_cast<driver::CallId>(record.call)));
    const bool done = record.end != 0 && record.result == 0 && (record.flags & faults::kForwarded) != 0;
    if (!done || !driver::IsRelease(row.effect) || settled.contains(record.begin)) continue;
    const bool nothing = row.object >= 0 && record.argument[row.object] == 0 && row.kind != driver::Kind::PrimaryContext;
    if (!nothing && row.effect != driver::Effect::PopsContext) ++held[row.kind];
  }
  return held;
}

void DropWhatNeedsTheBeginning(Ledger* ledger) {
  std::erase_if(ledger->violations, [](const Violation& violation) {
    return violation.rule == Rule::ContextStack || violation.rule == Rule::OverReleasedPrimary ||
           violation.rule == Rule::OverReleasedReference;
  });
}

void DropWhatNeedsTheEnd(Ledger* ledger) {
  std::erase_if(ledger->violations, [&](const Violation& violation) {
    const ProcessFacts* const process = ledger->facts.Process(violation.pid);
    return violation.rule == Rule::ContextStack && (process == nullptr || process->exit == 0);
  });
}

}  // namespace cuaudit::harness
