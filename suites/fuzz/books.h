// SPDX-License-Identifier: MIT
// books.h: what the ledger made of a program's journal, held against the simulator's own books.
//
//   Owns      nothing.
//   Threads   one thread.
//   Units     bytes; tickets of the journal's clock.
//   Errors    Require, with the journal, where the two do not agree.
//   Faults    makes no driver calls.
//   Source    ours. What is not compared, and why, stands at each exception.
#pragma once

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"
#include "harness/ledger/ledger.h"
#include "suites/fuzz/gated_run.h"

namespace cuaudit::fuzz {

// Whether the simulator answers for these by a handle, which no other object of one run ever gets: see sim::FateOf. The others are
// addresses, which are given out again, or devices.
bool HasHandle(driver::Kind kind);

// Textures, surfaces, mappings (texture.destroy_twice, vmm.unmap_unmapped): where the driver has nothing to release it says success all the
// same, and what is wrong only the ledger tells.
bool IsForgiven(driver::BaseId base);

// Each object that is alive in one is alive in the other, of the same length; each that died, died the same way.
void CompareObjects(const Run& run, const harness::Ledger& ledger);

// Each violation can be, by what the driver answered and by what became of the handle; and none is missing that must be there.
void CompareViolations(const Run& run, const harness::Ledger& ledger);

}  // namespace cuaudit::fuzz
