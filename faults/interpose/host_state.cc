// SPDX-License-Identifier: MIT
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/interpose/host_state.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "faults/interpose/options.h"
#include "faults/journal/stack_table.h"

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __lsan_do_leak_check();
__attribute__((weak)) void __tsan_init();
// Declared in sanitizer/allocator_interface.h. Calls the hooks for each block of a heap that belongs to a sanitizer.
__attribute__((weak)) int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t), void (*)(const volatile void*));
}

namespace cuaudit::faults {

void OnSanitizerMalloc(const volatile void* block, size_t bytes) noexcept;  // host_heap.cc
void OnSanitizerFree(const volatile void* block) noexcept;

namespace {

constinit Journal journal;
constinit InterposeOptions options;
constinit StackTable stacks;
constinit std::atomic<bool> active{false};
constinit std::atomic<bool> in_process{false};
constinit std::atomic<bool> in_span{false};
constinit std::atomic<pid_t> process{0};
thread_local bool inside = false;
thread_local bool in_own_span = false;

// Process id of a process that continues its parent (forker.h) and has its parent's id in its records; 0 for any other process.
constinit std::atomic<uint32_t> own_id{0};
constinit std::atomic<uint32_t> known_as{0};

uint32_t Known(long id) noexcept {
  const uint32_t value = static_cast<uint32_t>(id);
  return value == own_id.load(std::memory_order_relaxed) ? known_as.load(std::memory_order_relaxed) : value;
}

// The host probes may use only half of the journal, so that the driver calls have the other half.
bool MayWrite() noexcept {
  if constexpr (kWithHeap) return true;
  JournalHeader& header = journal.header();
  if ((header.flags.load(std::memory_order_relaxed) & kHostStopped) != 0) return false;
  if (header.occurrences[kHostRecords].fetch_add(1, std::memory_order_relaxed) < header.record_capacity / 2) return true;
  header.flags.fetch_or(kHostStopped, std::memory_order_relaxed);
  return false;
}

// Without a stack.
Record* Begin(HostCall call, uint64_t object, uint64_t detail) noexcept {
  if ((InProcess() && !InSpan()) || !MayWrite()) return nullptr;
  Quiet quiet;
  Record* record = journal.Begin();
  if (record == nullptr) return nullptr;
  record->kind = RecordKind::Host;
  record->call = static_cast<uint16_t>(call);
  record->flags = kForwarded;
  record->pid = Known(getpid());
  record->tid = Known(syscall(SYS_gettid));
  record->cycle = journal.header().cycle.load(std::memory_order_relaxed);
  record->phase = static_cast<Phase>(journal.header().phase.load(std::memory_order_relaxed));
  record->argument[0] = object;
  record->argument[1] = detail;
  return record;
}

// Wrapped blocks come from the C library, so its malloc_usable_size is needed. That of another allocator in the program does not know
// them.
size_t (*usable_bytes)(void*) noexcept = &malloc_usable_size;

}  // namespace

Quiet::Quiet() noexcept : errno_(errno), was_(inside) { inside = true; }

Quiet::~Quiet() {
  inside = was_;
  errno = errno_;
}

bool Watching() noexcept { return active.load(std::memory_order_relaxed) && !inside; }

bool HeapIsASanitizers() noexcept { return &__asan_init != nullptr || &__lsan_do_leak_check != nullptr || &__tsan_init != nullptr; }

bool HeapIsSeen() noexcept {
  if constexpr (!kWithHeap) {
    return false;
  } else {
    if (!HeapIsASanitizers()) return true;
    static const bool hooked = &__sanitizer_install_malloc_and_free_hooks != nullptr &&
                               __sanitizer_install_malloc_and_free_hooks(&OnSanitizerMalloc, &OnSanitizerFree) != 0;
    return hooked;
  }
}

size_t UsableBytes(void* block) noexcept { return usable_bytes(block); }

void FindUsableBytes() noexcept {
  if (HeapIsASanitizers()) return;
  void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = library == nullptr ? nullptr : dlsym(library, "malloc_usable_size");
  if (found != nullptr) usable_bytes = reinterpret_cast<size_t (*)(void*) noexcept>(found);
}

bool OpenJournal(const char* orders) noexcept {
  char message[512];
  // The driver drop-in reports a bad option. This library then merely does not watch.
  if (ParseOptions(orders, &options, message, sizeof(message)) != nullptr || options.journal[0] == '\0') return false;
  // Both host libraries may be in the process, because a program that audits its own lifecycles links the one with the heap.
  if (options.host != (kWithHeap ? HostChoice::Heap : HostChoice::Basic)) return false;
  if (journal.Open(options.journal) != nullptr) return false;
  stacks.Attach(&journal, true);
  ClaimMemory();
  return true;
}

bool AdoptJournal(void* memory) noexcept {
  static bool adopted = false;
  if (options.journal[0] != '\0') return false;
  Quiet quiet;
  if (!adopted) {
    journal.Adopt(memory);
    stacks.Attach(&journal, true);
    adopted = true;
  }
  ClaimMemory();
  return true;
}

void ClaimMemory() noexcept { process.store(getpid(), std::memory_order_relaxed); }

void StartWatching() noexcept { active.store(true, std::memory_order_release); }

void StopWatching() noexcept { active.store(false, std::memory_order_release); }

bool InProcess() noexcept { return in_process.load(std::memory_order_relaxed); }

bool InSpan() noexcept { return in_span.load(std::memory_order_relaxed); }

void SetInProcess(bool now) noexcept { in_process.store(now, std::memory_order_release); }

bool InOwnSpan() noexcept { return in_own_span && InSpan(); }

void SetInSpan(bool now) noexcept {
  in_own_span = now;
  in_span.store(now, std::memory_order_release);
}

StackTable& HostStacks() noexcept { return stacks; }

bool InBorrowedMemory() noexcept { return getpid() != process.load(std::memory_order_relaxed); }

Journal& HostJournal() noexcept { return journal; }

const Plan& HostPlan() noexcept { return options.plan; }

Record* Reserve(HostCall call, uint64_t object, uint64_t detail) noexcept {
  Record* record = Begin(call, object, detail);
  if (record == nullptr) return nullptr;
  Quiet quiet;
  record->stack = stacks.Capture();
  return record;
}

Record* ReserveBare(HostCall call, uint64_t object, uint64_t detail) noexcept { return Begin(call, object, detail); }

void Finish(Record* record) noexcept {
  if (record != nullptr) journal.Finish(record);
}

void Withdraw(Record* record) noexcept {
  if (record != nullptr) *record = Record();
}

void Write(HostCall call, uint64_t object, uint64_t detail) noexcept { Finish(Reserve(call, object, detail)); }

}  // namespace cuaudit::faults

// Called by the driver drop-in in a forked child, which writes to its own journal from now on.
extern "C" __attribute__((visibility("default"))) void cuaudit_host_continue(void* header, void* records, uint32_t self, uint32_t as) {
  using namespace cuaudit::faults;
  if (!active.load(std::memory_order_relaxed)) return;
  journal.Continue(static_cast<JournalHeader*>(header), static_cast<Record*>(records));
  process.store(getpid(), std::memory_order_relaxed);
  known_as.store(as, std::memory_order_relaxed);
  own_id.store(self, std::memory_order_relaxed);
}
