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

#include "faults/interpose/host_census.h"
#include "faults/interpose/host_objects.h"
#include "faults/interpose/host_owner.h"
#include "faults/interpose/host_watch.h"
#include "faults/interpose/options.h"
#include "faults/journal/stack_table.h"
#include "faults/probes/host_reading.h"

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
constinit std::atomic<pid_t> process{0};
thread_local bool inside = false;

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

[[maybe_unused]] void WriteReading() noexcept {
  static_assert(kHostMeterCount < kRecordArguments);
  const HostReading reading = ReadHost();
  Record* record = Begin(HostCall::Reading, 0, 0);
  if (record == nullptr) return;
  for (size_t i = 0; i < kHostMeterCount; ++i) {
    if (!reading.read.Has(static_cast<HostMeter>(i))) continue;
    record->argument[0] |= uint64_t{1} << i;
    record->argument[1 + i] = reading.value[i];
  }
  Finish(record);
}

// Records the meters and takes a census at the end of a cycle or of the process.
void TakeStock(bool at_the_end) noexcept {
  if (!Watching() || InProcess() || InBorrowedMemory()) return;
  if (at_the_end) AwaitDetaching();
  TakeCensus(at_the_end);
  if constexpr (kWithHeap) WriteReading();
}

void AfterFork() noexcept {
  process.store(getpid(), std::memory_order_relaxed);
  ForgetCallsUnderWay();
  ForgetThreads();
  if (InProcess()) {
    active.store(false, std::memory_order_relaxed);
    ForgetWatch();
  } else {
    stacks.AfterFork();
  }
}

// Wrapped blocks come from the C library, so its malloc_usable_size is needed. That of another allocator in the program does not know
// them.
size_t (*usable_bytes)(void*) noexcept = &malloc_usable_size;

void FindUsableBytes() noexcept {
  if (HeapIsASanitizers()) return;
  void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = library == nullptr ? nullptr : dlsym(library, "malloc_usable_size");
  if (found != nullptr) usable_bytes = reinterpret_cast<size_t (*)(void*) noexcept>(found);
}

__attribute__((constructor)) void OnLoad() {
  Quiet quiet;
  RememberLibraryPath();
  FindUsableBytes();
  const char* text = getenv("CUAUDIT_OPTIONS");
  if (text == nullptr) return;
  char message[512];
  // The driver drop-in reports a bad option. This library then merely does not watch.
  if (ParseOptions(text, &options, message, sizeof(message)) != nullptr || options.journal[0] == '\0') return;
  // Both host libraries may be in the process, because a program that audits its own lifecycles links the one with the heap.
  if (options.host != (kWithHeap ? HostChoice::Heap : HostChoice::Basic)) return;
  if (journal.Open(options.journal) != nullptr) return;
  stacks.Attach(&journal, true);
  FindCodeRanges();
  process.store(getpid(), std::memory_order_relaxed);
  RememberOpenDescriptors();
  pthread_atfork(nullptr, nullptr, &AfterFork);
  std::uint32_t flags = kHostProbesActive;
  if constexpr (kWithHeap) {
    if (!HeapIsASanitizers() && !HeapIsTheCLibrarys()) flags |= kHeapNotSeen;
    if (!HeapIsSeen()) flags |= kHostProbesSkipped;
  } else {
    flags |= kHeapLeftOut;
  }
  journal.header().flags.fetch_or(flags, std::memory_order_relaxed);
  active.store(true, std::memory_order_release);
  Finish(Begin(HostCall::Looking, 0, 0));
}

__attribute__((destructor)) void OnUnload() { TakeStock(true); }

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

bool WatchInto(void* memory) noexcept {
  static bool prepared = false;
  if (options.journal[0] != '\0') return false;
  Quiet quiet;
  if (!prepared) {
    journal.Adopt(memory);
    stacks.Attach(&journal, true);
    FindCodeRanges();
    pthread_atfork(nullptr, nullptr, &AfterFork);
    prepared = true;
  }
  RememberReplaceable();
  process.store(getpid(), std::memory_order_relaxed);
  active.store(true, std::memory_order_release);
  return true;
}

void StopWatching() noexcept { active.store(false, std::memory_order_release); }

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

// Called by the driver drop-in when a call has made a descriptor for the program, or the driver has taken one over from it.
extern "C" __attribute__((visibility("default"))) void cuaudit_host_descriptor(int descriptor, bool taken_over) noexcept {
  const int saved = errno;
  cuaudit::faults::ToldOfDescriptor(descriptor, taken_over);
  errno = saved;
}

// Called before the driver drop-in's function of the same name, so that records written here count for the cycle that ends.
extern "C" __attribute__((visibility("default"))) void cuaudit_mark(int what, int value) {
  using namespace cuaudit::faults;
  static void (*next)(int, int) = nullptr;
  constexpr int kCycleEnd = static_cast<int>(MarkKind::CycleEnd);
  if (what == kCycleEnd) TakeStock(false);
  if (auto* mark = Next(&next, "cuaudit_mark")) mark(what, value);
}
