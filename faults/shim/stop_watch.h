// SPDX-License-Identifier: MIT
// stop_watch.h: writes into the journal where a process dies of a signal, and where its threads are when it misses its deadline
// (RecordKind::Stop).
//
//   Owns      a handler for each deadly signal whose disposition is the default one, and the signal stack of the thread that starts the
//             watch, when that thread has none. One watch per process, never taken down.
//   Threads   safe. A stack overflow in a thread without a signal stack is not told, because no handler can run there.
//   Errors    what cannot be written is left out. The process ends as it would without the watch: by the same signal, with the same core.
//   Faults    allocates nothing, makes no driver call, and takes no lock where the loader has _dl_find_object (glibc 2.35).
//
// A program that sets a handler of its own replaces the one here, and nothing is told of that signal.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "faults/journal/journal.h"
#include "faults/journal/record.h"
#include "faults/journal/stack_table.h"

namespace cuaudit::faults {

// From here on what happens in this process is written to `journal`, which must stay.
void WatchStops(Journal* journal, StackTable* stacks) noexcept;
// Called in a forked child that owns its copy of this memory. Other children (of vfork) write nothing.
void WatchStopsInChild() noexcept;

// For wrappers of sigaction and its kin, which hide the watch from the program.
bool IsWatched(int signal) noexcept;
// True when `action` holds the handler of the watch.
bool IsWatchHandler(const struct sigaction& action) noexcept;
// What is installed in place of the default disposition.
struct sigaction WatchAction(int signal) noexcept;
// Called when the program has chosen the disposition of a watched signal. `watched`: it chose the default one.
void NoteDisposition(int signal, bool watched) noexcept;
bool IsWatchStack(const void* signal_stack) noexcept;

}  // namespace cuaudit::faults
