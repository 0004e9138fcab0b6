// SPDX-License-Identifier: MIT
// site_keys.h: places that are the same in every run of a program, and what compares call stacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/journal/journal_view.h"
#include "harness/ledger/ledger.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// Identifies a place in every run of the same program: the call, and build id (or path) and offset of each frame. 0 for no place. Each is
// computed once where the journal remembers them (JournalView::Remember).
[[nodiscard]] std::uint64_t SiteKey(const faults::JournalView& journal, const Site& site);

// Identifies only the call instruction, whatever the callers are.
[[nodiscard]] std::uint64_t CallerKey(const faults::JournalView& journal, const Site& site);

// Identifies the call of the shared CUDA runtime by which the program made the driver call; 0 when it made it without the runtime.
[[nodiscard]] std::uint64_t RuntimeCallKey(const faults::JournalView& journal, const Site& site);

// How far out the innermost caller is that both stacks of one run have in common: 1 for the function that made the call `from`. It is the
// number of frames when they have none. Frames are compared wherever they are, because a deep stack has lost its outermost ones.
[[nodiscard]] std::size_t CallerDistance(const faults::JournalView& journal, std::uint32_t from, std::uint32_t to);

// Hash over the driver calls of each thread in order: call, stack, result. Runs with equal hashes made the same calls.
[[nodiscard]] std::uint64_t TraceHash(const Evidence& run);

}  // namespace cuaudit::harness
