// SPDX-License-Identifier: MIT
// driver_owned.h: tells host resources of the driver from those of the program.
//
//   Errors    never fails. An object with an unknown stack stays the program's.
//
// A genuine driver allocates heap blocks and mutexes differently in each faulted run, and keeps many until the process ends. They are
// nobody's leak. Driver objects (streams, memory, ...) are never driver-owned.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

// Marks the host objects of the driver. The innermost frame outside the C and C++ libraries decides: the object is the driver's when the
// frame lies in libcuda, in a companion library (libnvidia-*) or in cuaudit's drop-in. Violations that concern such an object are dropped.
// Host objects of a helper process without driver calls (a shell that a failure path starts) are not judged either. The program's first
// process is never a helper.
void MarkDriverOwned(const faults::JournalView& journal, Ledger* ledger);

// True when the run watched the host although nobody asked for it (no --host). Host findings of such a run are shown and not judged.
bool OnlyShowsHost(const faults::JournalView& journal);

// Host probes that nobody asked for change no verdict. For such a run this moves host findings out of `findings` and returns them as notes:
// host_left and host_misused.
[[nodiscard]] std::vector<TrialFinding> TakeShown(const faults::JournalView& journal, std::vector<TrialFinding>* findings);

// True when a frame of the driver is in the stack: the driver called back into the program, for example into a destructor.
bool CalledByDriver(const faults::JournalView& journal, std::uint32_t stack);

// Interpreters are known by the names of their files. The lines of a program that one interprets do not show in its call stacks, but those
// of CPython do (faults/python).
bool IsInterpreter(std::string_view path) noexcept;

}  // namespace cuaudit::harness
