// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "faults/driver/foreign_runtime.h"
#include "faults/interpose/host_callers.h"
#include "faults/interpose/host_state.h"
#include "faults/interpose/host_watch.h"

namespace cuaudit::faults {
namespace {

// Cache of call sites: the address of the site, shifted left by one, with the answer in the lowest bit. Sites that share a slot replace
// each other.
constexpr std::size_t kSlots = 4096;
constinit std::atomic<std::uint64_t> sites[kSlots] = {};

bool IsForeign(const char* path) noexcept {
  constexpr const char* kForeign[] = {"libc.so",    "libc-2",  "ld-linux", "ld-2",    "libgcc_s.so", "libcuda.so",
                                      "libnvidia-", "libasan", "liblsan",  "libtsan", "libubsan",    "libcuaudit_"};
  const char* const slash = strrchr(path, '/');
  const char* const file = slash == nullptr ? path : slash + 1;
  for (const char* const one : kForeign) {
    if (strncmp(file, one, strlen(one)) == 0) return true;
  }
  return driver::RuntimeFileOf(file).shared;
}

}  // namespace

bool IsTheProgramsOwn(const void* caller) noexcept {
  const std::uint64_t address = Address(caller);
  std::atomic<std::uint64_t>& slot = sites[(address ^ address >> 12) % kSlots];
  const std::uint64_t known = slot.load(std::memory_order_relaxed);
  if (known >> 1 == address) return (known & 1) != 0;
  Quiet quiet;
  Dl_info info = {};
  const bool own = dladdr(caller, &info) == 0 || info.dli_fname == nullptr || !IsForeign(info.dli_fname);
  slot.store(address << 1 | (own ? 1 : 0), std::memory_order_relaxed);
  return own;
}

namespace {

struct Asked {
  driver::BaseId base;
  std::size_t occurrences;
  HostCall call;
  std::int32_t error;
};
constexpr Asked kMemory = {kHostAllocation, kHostOccurrences, HostCall::Allocate, ENOMEM};
constexpr Asked kThread = {kHostThread, kHostThreadOccurrences, HostCall::ThreadCreate, EAGAIN};

// For an audit in this process the refusal is recorded in the trial's journal, in order with the driver calls of the unwinding.
Record* BeginRefusal(const TurnBook& book, const Asked& asked, std::uint64_t detail) noexcept {
  if (!InProcess()) return Reserve(asked.call, 0, detail);
  Quiet quiet;
  Record* const record = book.journal->Begin();
  if (record == nullptr) return nullptr;
  record->kind = RecordKind::Host;
  record->call = static_cast<std::uint16_t>(asked.call);
  record->pid = static_cast<std::uint32_t>(getpid());
  record->tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  record->cycle = book.journal->header().cycle.load(std::memory_order_relaxed);
  record->phase = static_cast<Phase>(book.journal->header().phase.load(std::memory_order_relaxed));
  record->argument[1] = detail;
  record->stack = book.stacks->Capture();
  return record;
}

Turn Take(const Asked& asked, const void* caller, std::uint64_t detail) noexcept {
  if (!Watching()) return {};
  const TurnBook book = InProcess() ? WatchTurns() : TurnBook{&HostJournal(), &HostStacks(), &HostPlan()};
  if (book.journal == nullptr || !IsTheProgramsOwn(caller)) return {};
  JournalHeader& header = book.journal->header();
  Turn turn;
  turn.occurrence = header.occurrences[asked.occurrences].fetch_add(1, std::memory_order_relaxed) + 1;
  const Plan& plan = *book.plan;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Fault& fault = plan.fault(i);
    if (fault.base != asked.base) continue;
    if (fault.phase != Phase::Any && static_cast<std::uint32_t>(fault.phase) != header.phase.load(std::memory_order_relaxed)) continue;
    const std::uint32_t matching = header.matched[i].fetch_add(1, std::memory_order_relaxed) + 1;
    if (Plan::Decide(fault, matching).code == CUDA_SUCCESS || turn.refused) continue;
    header.fired[i].fetch_add(1, std::memory_order_relaxed);
    turn.refused = true;
    Record* record = BeginRefusal(book, asked, detail);
    if (record == nullptr) continue;
    record->flags = kInjected;
    record->result = asked.error;
    record->fault = static_cast<std::uint16_t>(i + 1);
    record->occurrence = turn.occurrence;
    book.journal->Finish(record);
  }
  return turn;
}

}  // namespace

Turn TakeTurn(const void* caller, std::size_t bytes) noexcept { return Take(kMemory, caller, bytes); }

Turn TakeThreadTurn(const void* caller) noexcept { return Take(kThread, caller, 0); }

}  // namespace cuaudit::faults
