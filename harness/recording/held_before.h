// SPDX-License-Identifier: MIT
// held_before.h: objects that a program held before a recording begins, as far as the recording shows them: it saw their release.
#pragma once

#include <cstdint>
#include <map>

#include "faults/driver/kinds.h"
#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// Releases that succeeded and that ended no object of the ledger, by kind. They say how much of what a kind gained was only its
// replacement.
std::map<driver::Kind, std::uint64_t> HeldBefore(const faults::JournalView& journal, const Ledger& ledger);

// Removes the violations that a ledger can only tell when it has seen everything: counts of references and of the context stack.
void DropWhatNeedsTheBeginning(Ledger* ledger);

// Removes what only a process that ends by itself can do wrong: a context stack that it had no time to empty.
void DropWhatNeedsTheEnd(Ledger* ledger);

}  // namespace cuaudit::harness
