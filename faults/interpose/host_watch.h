// SPDX-License-Identifier: MIT
// host_watch.h: the host drop-in at work for an audit in its own process (faults/probes/host_watch.h): no journal file, and blocks that
// are counted instead of written down.
//
//   Owns      the table of live blocks, the counts of the span, and what is to be refused.
//   Threads   safe, but for what host_watch.h of faults/probes gives to the audit's thread.
//   Units     bytes.
//   Errors    a full table is told in HostNet::lost.
//   Faults    makes no driver calls; allocates nothing.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/interpose/block_table.h"
#include "faults/journal/journal.h"
#include "faults/journal/stack_table.h"
#include "faults/plan/plan.h"
#include "faults/probes/host_watch.h"

namespace cuaudit::faults {

// An audit of this process asked for it.
bool InProcess() noexcept;
// Between the begin and the end of one of its cycles.
bool InSpan() noexcept;
// The program was forked: the audit stays with the parent.
void ForgetWatch() noexcept;

// What cuaudit_host_watch answers.
const HostWatchCalls& WatchCalls() noexcept;

void BlockCame(const void* block, std::size_t bytes, const void* caller) noexcept;
void BlockWent(void* block) noexcept;  // before it goes
// realloc: taken out before, because afterwards another thread may have the address; put back when it stayed.
bool TakeBlock(void* block, Block* was) noexcept;
void PutBack(const Block& was) noexcept;
void CountGone(const Block& was) noexcept;

// Where the n-th of something is counted and refused: the journal of cuaudit run, or the trial's of an audit in this process.
struct TurnBook {
  Journal* journal = nullptr;  // null: nothing is counted
  StackTable* stacks = nullptr;
  const Plan* plan = nullptr;
};
TurnBook WatchTurns() noexcept;

}  // namespace cuaudit::faults
