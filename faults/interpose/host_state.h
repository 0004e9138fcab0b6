// SPDX-License-Identifier: MIT
// host_state.h: state that the wrappers of the host drop-in share: the journal, whether the library watches, and how a record is
// written.
//
// The library has one journal and one stack table per process. All functions are thread-safe and do not call malloc. A
// per-thread flag keeps the library's own work from being recorded. A full journal drops records and says so; the program goes on.
#pragma once

#include <errno.h>
#include <stdint.h>

#include "faults/journal/journal.h"
#include "faults/journal/stack_table.h"
#include "faults/plan/plan.h"

namespace cuaudit::faults {

// True in libcuaudit_host.so, which contains host_heap.cc; libcuaudit_host_basic.so is otherwise the same.
#ifdef CUAUDIT_HOST_HEAP
inline constexpr bool kWithHeap = true;
#else
inline constexpr bool kWithHeap = false;
#endif

// Marks the thread as doing the library's own work, and restores errno.
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

// True when there is a journal or an audit in this process (host_watch.h), and the thread is not doing the library's own work.
bool Watching() noexcept;

// Opens the journal that these orders (CUAUDIT_OPTIONS) name for this library. False: they name none, or it cannot be opened.
bool OpenJournal(const char* orders) noexcept;
// Takes a journal in memory, for an audit in this process. False when there is a journal already.
bool AdoptJournal(void* memory) noexcept;
void StartWatching() noexcept;
void StopWatching() noexcept;

// True while an audit runs in this process (host_watch.h), and between the begin and the end of one of its spans.
bool InProcess() noexcept;
bool InSpan() noexcept;
bool InOwnSpan() noexcept;  // and the calling thread began it
void SetInProcess(bool now) noexcept;
void SetInSpan(bool now) noexcept;

StackTable& HostStacks() noexcept;
// True when the library sees heap blocks, by wrapping malloc or by a sanitizer's hooks.
bool HeapIsSeen() noexcept;
// Usable size of a block that the wrappers returned. FindUsableBytes is called once, while the library is loaded.
void FindUsableBytes() noexcept;
size_t UsableBytes(void* block) noexcept;
bool HeapIsASanitizers() noexcept;

// True in the child of a vfork, which runs in its parent's memory; what it does must not be recorded for the parent.
bool InBorrowedMemory() noexcept;
void ClaimMemory() noexcept;  // this process owns its memory from now on

Journal& HostJournal() noexcept;
const Plan& HostPlan() noexcept;

// Returns a record whose `begin` ticket is drawn, so that it counts from now on. The caller may still withdraw it. Null when the record
// must be dropped.
Record* Reserve(HostCall call, uint64_t object, uint64_t detail) noexcept;
Record* ReserveBare(HostCall call, uint64_t object, uint64_t detail) noexcept;  // without a stack, which would mislead
void Finish(Record* record) noexcept;
void Withdraw(Record* record) noexcept;
void Write(HostCall call, uint64_t object, uint64_t detail) noexcept;

inline uint64_t Address(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer); }

// In host_heap.cc: mutexes whose memory may be freed before they are destroyed.
void FollowMutex(uint64_t mutex) noexcept;
void LeaveMutex(uint64_t mutex) noexcept;
void ForgetMutexes() noexcept;  // mutexes of an earlier audit may have been destroyed unseen

}  // namespace cuaudit::faults
