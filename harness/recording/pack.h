// SPDX-License-Identifier: MIT
// pack.h: cuts a journal down to what it holds, so that it is small enough to send.
//
// The result has the same format. It has only the records that are whole, in their order, the call stacks of these, and the modules and
// Python functions of those. Nobody can append to it.
#pragma once

#include <string>

#include "faults/journal/journal_view.h"
#include "harness/recording/recording.h"

namespace cuaudit::harness {

// The bytes of the packed journal of a run, which keeps all its modules. No process may write `journal` any more.
std::string PackJournal(const faults::JournalView& journal);

// The same, without arguments that are data of the program (faults::IsData): for people who send it.
std::string PackWithoutData(const faults::JournalView& journal);

// The bytes of the packed recording. `recording` was read from `journal`.
std::string PackRecording(const faults::JournalView& journal, const Recording& recording);

}  // namespace cuaudit::harness
