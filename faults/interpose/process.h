// SPDX-License-Identifier: MIT
// process.h: the drop-in's state, one per process: the gate, the journal and the driver that was chosen.
//
//   Owns      everything until the process ends; nothing is torn down, so calls from exit handlers still reach a driver. The simulated
//             one is closed by an exit handler, as a genuine one closes: calls then answer DEINITIALIZED.
//   Threads   loading is single-threaded; the driver is opened once, by whichever thread calls first.
//   Errors    a bad CUAUDIT_OPTIONS or journal ends the program with status 2 and one line on stderr; no driver, or no address
//             space for the simulated one, ends it with status 3 and one line at its first driver call. Both end by _exit: no exit
//             handler runs and nothing buffered by stdio is written.
//   Faults    opening the driver makes no driver call.
//   Source    ours.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "process.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include "faults/shim/gate.h"

namespace cuaudit::faults {

// cuGetExportTable on the simulated driver: when it is NVIDIA's runtime that asks, the program ends with status 3 and one line that
// says what to do (on stderr without a journal, else by whoever reads the journal). Its authentication of the driver is left alone.
void NoteExportTable(const void* table_id) noexcept;

// The gate, its driver opened by the first call.
Gate& ProcessGate() noexcept;

// After a cuInit that succeeded: a genuine driver closes in an exit handler of its own, registered by the first of them.
void NoteInit() noexcept;

// For a driver call that did not succeed: after the first fault, an exit handler is due (ProcessEvent::Exit).
void NoteFailure() noexcept;

// For a process that leaves without exit handlers: ProcessEvent::Exit now, unless it only borrows this memory (vfork).
void NoteLeaving() noexcept;

}  // namespace cuaudit::faults
