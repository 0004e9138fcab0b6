// SPDX-License-Identifier: MIT
// host_watch.h: the host drop-in's side of an audit in its own process (faults/probes/host_watch.h). There is no journal file, and
// blocks are counted instead of recorded.
//
// Owns the table of live blocks, the counts of the span and the plan of refusals. Functions are thread-safe, apart from those that
// faults/probes/host_watch.h assigns to the audit's thread. Nothing here allocates. A full table sets HostNet::lost.
#pragma once

#include <cstddef>

#include "faults/interpose/host_tables.h"
#include "faults/journal/journal.h"
#include "faults/journal/stack_table.h"
#include "faults/plan/plan.h"
#include "faults/probes/host_watch.h"

namespace cuaudit::faults {

// Called in a forked child: the audit stays with the parent.
void ForgetWatch() noexcept;

// The functions that cuaudit_host_watch returns.
const HostWatchCalls& WatchCalls() noexcept;

void BlockCame(const void* block, std::size_t bytes, const void* caller) noexcept;
void BlockWent(void* block) noexcept;  // called before the block is freed
// For realloc: removes the block before the call, because afterwards another thread may have the address. A block that stayed is put
// back.
bool TakeBlock(void* block, Block* was) noexcept;
void PutBack(const Block& was) noexcept;
void CountGone(const Block& was) noexcept;

// Journal in which requests are counted and refused: that of `cuaudit run`, or the trial's journal of an audit in this process.
struct TurnBook {
  Journal* journal = nullptr;  // null: requests are not counted
  StackTable* stacks = nullptr;
  const Plan* plan = nullptr;
};
TurnBook WatchTurns() noexcept;

}  // namespace cuaudit::faults
