// SPDX-License-Identifier: MIT
// host_state.h: what the wrappers of the host drop-in share: its journal, whether it watches, and how a record is written.
//
//   Owns      the journal and the stack table of the library, one per process (host_state.cc).
//   Threads   safe. Its own work is never recorded (a per-thread flag).
//   Units     bytes.
//   Errors    a full journal drops records and says so; the program goes on.
//   Faults    makes no driver calls; allocates nothing with malloc.
//   Source    ours.
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>

#include "faults/journal/journal.h"
#include "faults/journal/stack_table.h"
#include "faults/plan/plan.h"

namespace cuaudit::faults {

// Whether host_heap.cc is part of this library: libcuaudit_host.so and libcuaudit_host_basic.so are otherwise the same.
#ifdef CUAUDIT_HOST_HEAP
inline constexpr bool kWithHeap = true;
#else
inline constexpr bool kWithHeap = false;
#endif

// Marks this thread as doing the probe's own work, and keeps errno as it was.
class Quiet {
 public:
  Quiet() noexcept;
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int errno_;
  bool was_;
};

// There is a journal, or an audit in this process (host_watch.h), and this thread is not doing the probe's own work.
bool Watching() noexcept;

// Starts watching for an audit in this process, into that journal in memory. False when there is a journal already.
bool WatchInto(void* journal) noexcept;
void StopWatching() noexcept;
StackTable& HostStacks() noexcept;
// True when the heap is ours to watch, by wrapping it or by the sanitizer's hooks.
bool HeapIsSeen() noexcept;
// How many bytes a block that our wrappers handed out really has.
size_t UsableBytes(void* block) noexcept;
bool HeapIsASanitizers() noexcept;

// The child of a vfork: it runs in its parent's memory, and nothing that it does here is its parent's.
bool InBorrowedMemory() noexcept;

Journal& HostJournal() noexcept;
const Plan& HostPlan() noexcept;

// A record whose ticket is drawn, so that it counts from here on; what it tells may still prove untrue. Null when it must be dropped.
Record* Reserve(HostCall call, uint64_t object, uint64_t detail) noexcept;
Record* ReserveBare(HostCall call, uint64_t object, uint64_t detail) noexcept;  // without a stack, where it would mislead
void Finish(Record* record) noexcept;
void Withdraw(Record* record) noexcept;
void Write(HostCall call, uint64_t object, uint64_t detail) noexcept;

inline uint64_t Address(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer); }

// The function that the program would have called without us.
template <typename Function>
Function* Next(Function** known, const char* name) noexcept {
  Function* next = __atomic_load_n(known, __ATOMIC_RELAXED);
  if (next == nullptr) {
    next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    __atomic_store_n(known, next, __ATOMIC_RELAXED);
  }
  return next;
}

// host_heap.cc: mutexes whose memory may be freed under them.
void FollowMutex(uint64_t mutex) noexcept;
void LeaveMutex(uint64_t mutex) noexcept;
void ForgetMutexes() noexcept;  // those of an earlier audit may be gone, unseen

// host_threads.cc: what a thread still comes to is to be in the journal before the process ends.
void AwaitDetaching() noexcept;
void ForgetThreads() noexcept;  // in a forked child

}  // namespace cuaudit::faults
