// SPDX-License-Identifier: MIT
// process.h: the drop-in's state, one per process: the gate, the journal and the driver that was chosen.
//
//   Owns      everything until the process ends. Nothing is torn down, so that calls from exit handlers still reach a driver. The simulated
//             driver is closed by an exit handler, as a genuine one closes: calls then answer CUDA_ERROR_DEINITIALIZED.
//   Threads   loading is single-threaded. The first thread that calls opens the driver, once; opening makes no driver call.
//   Errors    a bad CUAUDIT_OPTIONS or journal ends the program with status 2 and one line on stderr. No driver, or no address space for
//             the simulated one, ends it with status 3 and one line at its first driver call. Both use _exit: no exit handler runs and
//             nothing buffered by stdio is written.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "process.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include "faults/shim/gate.h"

namespace cuaudit::faults {

// For cuGetExportTable on the simulated driver. When NVIDIA's runtime asks, the program ends with status 3 and one line that says what
// to do: on stderr without a journal, otherwise by the reader of the journal. The runtime's authentication of the driver is not
// answered.
void NoteExportTable(const void* table_id) noexcept;

// The gate. The first call opens its driver.
Gate& ProcessGate() noexcept;

// Called after a cuInit that succeeded. A genuine driver closes in an exit handler that its first successful cuInit registers.
void NoteInit() noexcept;

// Called after a driver call that failed. After the first fault it registers the exit handler again (ProcessEvent::Exit).
void NoteFailure() noexcept;

// Called in a process that leaves without exit handlers. Writes ProcessEvent::Exit, unless the process only borrows this memory (vfork).
// Runs no code of the program, because _exit may be called in a signal handler.
void NoteLeaving() noexcept;

// Whether the program's calls of sigaction come to this library (libc_calls.cc). False where the program would see handlers of this
// library, for example after dlopen of the driver alone.
bool SignalCallsAreOurs() noexcept;

}  // namespace cuaudit::faults
