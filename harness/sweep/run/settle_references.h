// SPDX-License-Identifier: MIT
// settle_references.h: settles the releases of counted references with the acquisitions that the program means.
//
//   Owns      nothing. Borrows ledgers and journals.
//   Errors    never fails. What the call stacks do not tell stays as the ledger settled it.
//
// The fold settles a release with the newest reference, because the records of one moment tell no more. Here call stacks tell more
// (harness/defect/reference_pairs.h). Only which reference remains changes, never how many. Nothing is done for handles that were never
// held from several places at once.
#pragma once

#include <optional>

#include "harness/ledger/ledger.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {

// Of a fault-free run. Fills Ledger::settled, which trials are settled by.
void SettleReferences(const faults::JournalView& journal, Ledger* ledger);

// Of a trial, as the rehearsal settles them; nullopt when the trial's ledger is right as it is.
std::optional<Ledger> SettledAsRehearsed(const Evidence& rehearsal, const Evidence& trial, SiteTexts* sites);

}  // namespace cuaudit::harness
