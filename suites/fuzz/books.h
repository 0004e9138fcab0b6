// SPDX-License-Identifier: MIT
// books.h: compares the ledger made from a program's journal with the simulator's own books. Require fails, with the journal, where they
// differ. Each exception says what is not compared and why.
#pragma once

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"
#include "harness/ledger/ledger.h"
#include "suites/fuzz/gated_run.h"

namespace cuaudit::fuzz {

// True for kinds whose handles no other object of the run ever gets (sim::FateOf). Other kinds are named by addresses, which are reused,
// or by devices.
bool HasHandle(driver::Kind kind);

// True for releases of textures, surfaces and mappings (questions texture.destroy_twice, vmm.unmap_unmapped): the driver answers success
// even when there is nothing to release, so only the ledger sees the violation.
bool IsForgiven(driver::BaseId base);

// Requires that the same objects are alive in both, with the same length, and that dead objects died in the same way.
void CompareObjects(const Run& run, const harness::Ledger& ledger);

// Requires that each violation fits the driver's answers and the fate of the handle, and that no violation is missing.
void CompareViolations(const Run& run, const harness::Ledger& ledger);

}  // namespace cuaudit::fuzz
