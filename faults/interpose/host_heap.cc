// SPDX-License-Identifier: MIT
// host_heap.cc: records heap blocks, and the mutexes that lie in them. Only libcuaudit_host.so contains this file: a library that wraps
// malloc replaces any other allocator that the program brings, and it writes a record for each call.
//
// Without a journal every call goes straight to the C library (glibc's __libc_ entry points). When more mutexes are alive than the table
// holds, kMutexesDropped is raised. A heap that belongs to a sanitizer is watched by the sanitizer's hooks
// (sanitizer/allocator_interface.h); when it has none, kHostProbesSkipped is raised.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "faults/interpose/host_callers.h"
#include "faults/interpose/host_state.h"
#include "faults/interpose/host_tables.h"
#include "faults/interpose/host_watch.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace cuaudit::faults {
namespace {

constinit MutexTable mutexes;

size_t PageBytes() noexcept { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// `caller`: the return address of the intercepted call, null when a hook was called instead.
void WriteBlock(const void* block, size_t bytes, const void* caller, Turn turn) noexcept {
  if (InProcess()) {
    BlockCame(block, bytes, caller);
    return;
  }
  Record* record = Reserve(HostCall::Allocate, Address(block), bytes);
  if (record == nullptr) return;
  record->occurrence = turn.occurrence;
  record->flags |= OwnerFlags(caller, record->stack);
  Finish(record);
}

// Allocates with `allocate`, unless the plan refuses this allocation.
template <typename Allocate>
void* Allocated(size_t bytes, const void* caller, const Allocate& allocate) noexcept {
  const Turn turn = TakeTurn(caller, bytes);
  if (turn.refused) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = allocate();
  if (block != nullptr && Watching()) WriteBlock(block, bytes, caller, turn);
  return block;
}

// Called before the memory is freed, because another thread may own the address at once afterwards. The caller finishes the record when
// the C library has taken the block. When the C library aborts the program instead, the unfinished record shows that.
Record* Deallocating(void* block) noexcept {
  if (block == nullptr || !Watching()) return nullptr;
  if (!mutexes.empty()) {
    const size_t bytes = UsableBytes(block);
    mutexes.RemoveRange(Address(block), bytes, [](uint64_t mutex, bool locked) { Write(HostCall::MutexFreed, mutex, locked ? 1 : 0); });
  }
  if (InProcess()) {
    BlockWent(block);
    return nullptr;
  }
  return Reserve(HostCall::Deallocate, Address(block), 0);
}

// Uses the C library's realloc, which can grow a block in place. Only afterwards is it known whether the old address was given up, and
// then another thread may have the address already. The records are therefore reserved before, and withdrawn when nothing was given up.
void* Resized(void* block, size_t bytes) noexcept {
  constexpr size_t kMostMutexes = 32;
  struct Inside {
    uint64_t mutex;
    Record* freed;
  } inside_block[kMostMutexes];
  size_t count = 0;
  if (!mutexes.empty()) {
    mutexes.RemoveRange(Address(block), UsableBytes(block), [&](uint64_t mutex, bool locked) {
      if (count < kMostMutexes) {
        inside_block[count++] = {mutex, Reserve(HostCall::MutexFreed, mutex, locked ? 1 : 0)};
      } else {
        HostJournal().header().flags.fetch_or(kMutexesDropped, std::memory_order_relaxed);
      }
    });
  }
  Record* given_up = InProcess() ? nullptr : Reserve(HostCall::Deallocate, Address(block), 0);
  Block was;
  const bool taken = InProcess() && TakeBlock(block, &was);
  void* resized = __libc_realloc(block, bytes);
  const uint64_t kept = resized == nullptr ? SIZE_MAX : resized == block ? bytes : 0;
  for (size_t i = 0; i < count; ++i) {
    const Inside& one = inside_block[i];
    if (one.mutex - Address(block) + sizeof(pthread_mutex_t) <= kept) {
      Withdraw(one.freed);
      FollowMutex(one.mutex);
    } else {
      Finish(one.freed);
    }
  }
  if (resized == nullptr) {
    Withdraw(given_up);
    if (taken) PutBack(was);
  } else {
    Finish(given_up);
    if (taken) CountGone(was);
  }
  return resized;
}

}  // namespace

void FollowMutex(uint64_t mutex) noexcept {
  if (!mutexes.Add(mutex)) HostJournal().header().flags.fetch_or(kMutexesDropped, std::memory_order_relaxed);
}

void LeaveMutex(uint64_t mutex) noexcept { mutexes.Remove(mutex); }

void ForgetMutexes() noexcept { mutexes.Clear(); }

void OnSanitizerMalloc(const volatile void* block, size_t bytes) noexcept {
  if (block != nullptr && Watching()) WriteBlock(const_cast<const void*>(block), bytes, nullptr, Turn());
}

void OnSanitizerFree(const volatile void* block) noexcept { Finish(Deallocating(const_cast<void*>(block))); }

}  // namespace cuaudit::faults

using namespace cuaudit::faults;

#define CUAUDIT_EXPORT extern "C" __attribute__((visibility("default")))

CUAUDIT_EXPORT void* malloc(size_t bytes) noexcept {
  return Allocated(bytes, __builtin_return_address(0), [=] { return __libc_malloc(bytes); });
}

CUAUDIT_EXPORT void* calloc(size_t count, size_t bytes) noexcept {
  return Allocated(count * bytes, __builtin_return_address(0), [=] { return __libc_calloc(count, bytes); });
}

CUAUDIT_EXPORT void* realloc(void* block, size_t bytes) noexcept {
  if (!Watching()) return __libc_realloc(block, bytes);
  const void* const caller = __builtin_return_address(0);
  if (block != nullptr && bytes != 0) return Allocated(bytes, caller, [=] { return Resized(block, bytes); });
  if (block != nullptr) {
    Record* const record = Deallocating(block);  // realloc(p, 0) is free
    void* const none = __libc_realloc(block, 0);
    Finish(record);
    return none;
  }
  return Allocated(bytes, caller, [=] { return __libc_realloc(nullptr, bytes); });
}

CUAUDIT_EXPORT void* memalign(size_t alignment, size_t bytes) noexcept {
  return Allocated(bytes, __builtin_return_address(0), [=] { return __libc_memalign(alignment, bytes); });
}

CUAUDIT_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return Allocated(bytes, __builtin_return_address(0), [=] { return __libc_memalign(alignment, bytes); });
}

CUAUDIT_EXPORT void* valloc(size_t bytes) noexcept {
  return Allocated(bytes, __builtin_return_address(0), [=] { return __libc_memalign(PageBytes(), bytes); });
}

CUAUDIT_EXPORT void* pvalloc(size_t bytes) noexcept {
  const size_t page = PageBytes();
  if (bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  const size_t whole = (bytes + page - 1) & ~(page - 1);
  return Allocated(whole, __builtin_return_address(0), [=] { return __libc_memalign(page, whole); });
}

CUAUDIT_EXPORT int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  const int saved = errno;
  void* memory = Allocated(bytes, __builtin_return_address(0), [=] { return __libc_memalign(alignment, bytes); });
  errno = saved;
  if (memory == nullptr) return ENOMEM;
  *block = memory;
  return 0;
}

CUAUDIT_EXPORT void free(void* block) noexcept {
  Record* const record = Deallocating(block);
  __libc_free(block);
  Finish(record);
}
