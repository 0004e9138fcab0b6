// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/interpose/host_watch.h"

#include <dlfcn.h>

#include <atomic>

#include "faults/driver/call_id.h"
#include "faults/interpose/host_callers.h"
#include "faults/interpose/host_census.h"
#include "faults/interpose/host_state.h"
#include "faults/probes/host_watch.h"

namespace cuaudit::faults {
namespace {

constinit std::atomic<std::uint32_t> span{0};  // the current span, counted from 1; 0: none
constinit std::uint32_t last_span = 0;
constinit std::atomic<bool> with_stacks{false};
constinit BlockTable blocks;

struct Counts {
  std::atomic<std::int64_t> kept{0};
  std::atomic<std::int64_t> kept_bytes{0};
  std::atomic<std::int64_t> gone{0};
  std::atomic<std::int64_t> gone_bytes{0};
  std::atomic<bool> lost{false};
};
constinit Counts counts;

constinit Journal turn_journal;
constinit StackTable turn_stacks;
constinit Plan turn_plan;
constinit std::atomic<bool> turns{false};

void Add(std::atomic<std::int64_t>* number, std::int64_t value) noexcept { number->fetch_add(value, std::memory_order_relaxed); }

// Calls of `name` reach this library directly, or through a sanitizer that calls it.
HostUnseen IsUnseen(const char* name) noexcept {
  Dl_info first = {};
  Dl_info own = {};
  const void* const found = dlsym(RTLD_DEFAULT, name);
  if (HeapIsASanitizers()) return HostUnseen::No;
  const bool ours = found != nullptr && dladdr(found, &first) != 0 && dladdr(reinterpret_cast<const void*>(&InProcess), &own) != 0 &&
                    first.dli_fbase == own.dli_fbase;
  return ours ? HostUnseen::No : HostUnseen::Other;
}

bool BeginWatch(void* journal, HostBlind* blind) noexcept {
  if (!AdoptJournal(journal)) return false;
  {
    const Quiet quiet;
    RememberReplaceable();
  }
  StartWatching();
  blind->heap = HeapIsSeen() ? IsUnseen("malloc") : HostUnseen::NoHooks;
  blind->mutexes = IsUnseen("pthread_mutex_init");
  blind->libraries = IsUnseen("dlopen");
  // Blocks of an earlier audit may have been freed unseen.
  blocks.Clear();
  if constexpr (kWithHeap) ForgetMutexes();
  SetInProcess(true);
  return true;
}

void EndWatch() noexcept {
  StopWatching();
  SetInProcess(false);
}

void StartSpan(bool stacks) noexcept {
  for (std::atomic<std::int64_t>* const number : {&counts.kept, &counts.kept_bytes, &counts.gone, &counts.gone_bytes}) {
    number->store(0, std::memory_order_relaxed);
  }
  counts.lost.store(false, std::memory_order_relaxed);
  with_stacks.store(stacks, std::memory_order_relaxed);
  HostJournal().header().stack_depth.store(stacks ? kMaxFrames : 0, std::memory_order_relaxed);
  span.store(++last_span, std::memory_order_release);
  SetInSpan(true);
}

void WriteBlockRecord(HostCall call, const Block& block) noexcept {
  Record* const record = HostJournal().Begin();
  if (record == nullptr) return;
  record->kind = RecordKind::Host;
  record->call = static_cast<std::uint16_t>(call);
  record->flags = static_cast<std::uint16_t>(kForwarded | block.flags);
  record->argument[0] = block.address;
  record->argument[1] = block.bytes;
  record->stack = block.stack;
  HostJournal().Finish(record);
}

HostNet EndSpan() noexcept {
  ReopenClosed();
  SetInSpan(false);
  const std::uint32_t ended = span.exchange(0, std::memory_order_acq_rel);
  HostNet net;
  net.kept = counts.kept.load(std::memory_order_relaxed);
  net.kept_bytes = counts.kept_bytes.load(std::memory_order_relaxed);
  net.gone = counts.gone.load(std::memory_order_relaxed);
  net.gone_bytes = counts.gone_bytes.load(std::memory_order_relaxed);
  net.lost = counts.lost.load(std::memory_order_relaxed);
  if (!with_stacks.load(std::memory_order_relaxed) || net.kept == 0) return net;
  const Quiet quiet;
  blocks.ForEach([ended](const Block& block) {
    if (block.span == ended) WriteBlockRecord(HostCall::Allocate, block);
  });
  return net;
}

void StartAt(const void* frame) noexcept {
  HostStacks().StartAt(frame);
  if (turns.load(std::memory_order_relaxed)) turn_stacks.StartAt(frame);
}

// Called between spans, when no request is counted.
void Refuse(void* journal, const Plan* plan) noexcept {
  turns.store(false, std::memory_order_release);
  if (journal == nullptr) return;
  const Quiet quiet;
  turn_plan = *plan;
  const bool known = turn_journal.is_open() && &turn_journal.header() == journal;
  turn_journal.Adopt(journal);
  if (!known) turn_stacks.Attach(&turn_journal, true);
  turns.store(true, std::memory_order_release);
}

bool IsOfSpan(std::uint64_t address, std::uint32_t now, Block* block) noexcept {
  return address != 0 && blocks.Find(address, block) && block->span == now;
}

// Follows the words of each block to further blocks.
void GiveAway(const void* address) noexcept {
  constexpr std::size_t kMost = 512;  // blocks that wait to be looked at; what only others point to stays counted
  const Quiet quiet;
  const std::uint32_t now = span.load(std::memory_order_relaxed);
  std::uint64_t waiting[kMost] = {Address(address)};
  std::size_t count = now == 0 ? 0 : 1;
  while (count != 0) {
    const std::uint64_t next = waiting[--count];
    Block block;
    if (!IsOfSpan(next, now, &block) || !blocks.Remove(next, &block)) continue;
    CountGone(block);
    const auto* const words = reinterpret_cast<const std::uint64_t*>(next);  // NOLINT(performance-no-int-to-ptr)
    for (std::size_t i = 0; i < block.bytes / sizeof(*words) && count < kMost; ++i) {
      Block other;
      if (IsOfSpan(words[i], now, &other)) waiting[count++] = words[i];
    }
  }
}

constinit HostWatchCalls calls = {0, &BeginWatch, &EndWatch, &StartSpan, &EndSpan, &StartAt, &Refuse, &GiveAway};

}  // namespace

void ForgetWatch() noexcept {
  span.store(0, std::memory_order_relaxed);
  SetInSpan(false);
  turns.store(false, std::memory_order_relaxed);
  SetInProcess(false);
}

void BlockCame(const void* address, std::size_t bytes, const void* caller) noexcept {
  const std::uint32_t now = span.load(std::memory_order_relaxed);
  if (now == 0) return;
  Block block = {Address(address), bytes, 0, now, 0};
  if (with_stacks.load(std::memory_order_relaxed)) {
    const Quiet quiet;
    block.stack = HostStacks().Capture();
    block.flags = OwnerFlags(caller, block.stack);
  }
  if (!blocks.Add(block)) {
    counts.lost.store(true, std::memory_order_relaxed);
    return;
  }
  Add(&counts.kept, 1);
  Add(&counts.kept_bytes, static_cast<std::int64_t>(bytes));
}

bool TakeBlock(void* address, Block* was) noexcept { return blocks.Remove(Address(address), was); }

void PutBack(const Block& was) noexcept {
  if (!blocks.Add(was)) counts.lost.store(true, std::memory_order_relaxed);
}

void CountGone(const Block& was) noexcept {
  const std::uint32_t now = span.load(std::memory_order_relaxed);
  if (now == 0) return;
  const auto bytes = static_cast<std::int64_t>(was.bytes);
  if (was.span == now) {
    Add(&counts.kept, -1);
    Add(&counts.kept_bytes, -bytes);
    return;
  }
  Add(&counts.gone, 1);
  Add(&counts.gone_bytes, bytes);
  if (!with_stacks.load(std::memory_order_relaxed)) return;
  const Quiet quiet;
  WriteBlockRecord(HostCall::Deallocate, was);
}

void BlockWent(void* address) noexcept {
  Block was;
  if (blocks.Remove(Address(address), &was)) CountGone(was);
}

TurnBook WatchTurns() noexcept {
  if (!turns.load(std::memory_order_acquire) || !InSpan()) return {};
  return {&turn_journal, &turn_stacks, &turn_plan};
}

const HostWatchCalls& WatchCalls() noexcept {
  calls.digest = HostWatchDigest(driver::TableDigest());
  return calls;
}

}  // namespace cuaudit::faults
