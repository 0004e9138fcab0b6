// SPDX-License-Identifier: MIT
// driver_owned.h: tells the driver's own host resources from the program's.
//
//   Owns      nothing; marks the objects of a ledger.
//   Threads   values; no shared state.
//   Errors    never fails. An object whose stack is unknown stays the program's.
//   Faults    makes no driver calls.
//   Source    ours. A genuine driver allocates heap blocks and mutexes as it pleases, differently in each faulted run, and keeps many
//             until the process ends: they are nobody's leak. Driver objects (streams, memory...) are never driver-owned.
#pragma once

#include <cstdint>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// A host object is the driver's when the innermost frame that is not the C or C++ library's lies in libcuda, one of its companion
// libraries (libnvidia-*) or cuaudit's drop-in. Violations that concern such an object are dropped. What a helper process takes that makes
// no driver call (a shell that a failure path starts) is nobody's concern either; the program's first process is no helper.
void MarkDriverOwned(const faults::JournalView& journal, Ledger* ledger);

// Nobody asked for the host probes of this run: what they see is shown and judged by nobody.
bool OnlyShowsHost(const faults::JournalView& journal);

// True when the driver is among the callers: what happened there was done by a callback of the program, a destructor for one.
bool CalledByDriver(const faults::JournalView& journal, std::uint32_t stack);

}  // namespace cuaudit::harness
