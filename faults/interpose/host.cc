// SPDX-License-Identifier: MIT
// host.cc: libcuaudit_host.so, a preload that writes host resources into the same journal: heap blocks, dlopen references, mutexes.
//
//   Owns      a small table of live mutexes; everything else is in the journal.
//   Threads   safe. Its own work is never recorded (a per-thread flag).
//   Units     bytes.
//   Errors    more mutexes at once than the table holds: kMutexesDropped. Stays out when a sanitizer owns the heap (kHostProbesSkipped)
//             or when there is no journal; then every call goes straight on.
//   Faults    makes no driver calls.
//   Source    glibc's __libc_ entry points; pthread_mutex_t::__data.__lock for "locked".
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/interpose/host_dlopen.h"
#include "faults/interpose/mutex_table.h"
#include "faults/interpose/options.h"
#include "faults/journal/journal.h"
#include "faults/journal/stack_table.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __lsan_do_leak_check();
}

namespace cuaudit::faults {
namespace {

constinit Journal journal;
constinit StackTable stacks;
constinit MutexTable mutexes;
constinit std::atomic<bool> active{false};
thread_local bool inside = false;

// stdio gives each stream its buffer at the first use, wherever that happens to be: on a failure path it would look like a leak.
// A leaked FILE is still seen, by its own block.
uintptr_t stdio_buffers = 0;
constexpr uintptr_t kStdioBufferCode = 512;  // the function is about 200 bytes long

int (*next_mutex_init)(pthread_mutex_t*, const pthread_mutexattr_t*);
int (*next_mutex_destroy)(pthread_mutex_t*);

// Marks this thread as doing the probe's own work.
class Quiet {
 public:
  Quiet() noexcept : errno_(errno) { inside = true; }
  ~Quiet() {
    inside = false;
    errno = errno_;
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int errno_;
};

bool Watching() noexcept { return active.load(std::memory_order_relaxed) && !inside; }

// Of a process that continues its parent (forker.h) and stands in its records under its parent's id.
constinit std::atomic<uint32_t> own_id{0};
constinit std::atomic<uint32_t> known_as{0};

uint32_t Known(long id) noexcept {
  const uint32_t value = static_cast<uint32_t>(id);
  return value == own_id.load(std::memory_order_relaxed) ? known_as.load(std::memory_order_relaxed) : value;
}

// A record whose ticket is drawn, so that it counts from here on; what it tells may still prove untrue.
Record* Reserve(HostCall call, uint64_t object, uint64_t detail) noexcept {
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
  record->stack = stacks.Capture();
  return record;
}

void Finish(Record* record) noexcept {
  if (record != nullptr) journal.Finish(record);
}

void Withdraw(Record* record) noexcept {
  if (record != nullptr) *record = Record();
}

void Write(HostCall call, uint64_t object, uint64_t detail) noexcept { Finish(Reserve(call, object, detail)); }

size_t PageBytes() noexcept { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

uint64_t Address(const void* pointer) noexcept { return reinterpret_cast<uintptr_t>(pointer); }

void* Allocated(void* block, size_t bytes, const void* caller) noexcept {
  if (Address(caller) - stdio_buffers < kStdioBufferCode) return block;
  if (block != nullptr && Watching()) Write(HostCall::Allocate, Address(block), bytes);
  return block;
}

// Before the memory goes back: afterwards another thread may own the address.
void Deallocating(void* block) noexcept {
  if (block == nullptr || !Watching()) return;
  if (!mutexes.empty()) {
    const size_t bytes = malloc_usable_size(block);
    mutexes.RemoveRange(Address(block), bytes, [](uint64_t mutex, bool locked) { Write(HostCall::MutexFreed, mutex, locked ? 1 : 0); });
  }
  Write(HostCall::Deallocate, Address(block), 0);
}

void Follow(uint64_t mutex) noexcept {
  if (!mutexes.Add(mutex)) journal.header().flags.fetch_or(kMutexesDropped, std::memory_order_relaxed);
}

// The C library's realloc, which knows how to grow in place; whether the old address is given up is only known afterwards, when another
// thread may have it already. So the records of that are reserved before, and withdrawn when nothing was given up.
void* Resized(void* block, size_t bytes) noexcept {
  constexpr size_t kMostMutexes = 32;
  struct Inside {
    uint64_t mutex;
    Record* freed;
  } inside_block[kMostMutexes];
  size_t count = 0;
  if (!mutexes.empty()) {
    mutexes.RemoveRange(Address(block), malloc_usable_size(block), [&](uint64_t mutex, bool locked) {
      if (count < kMostMutexes) {
        inside_block[count++] = {mutex, Reserve(HostCall::MutexFreed, mutex, locked ? 1 : 0)};
      } else {
        journal.header().flags.fetch_or(kMutexesDropped, std::memory_order_relaxed);
      }
    });
  }
  Record* given_up = Reserve(HostCall::Deallocate, Address(block), 0);
  void* resized = __libc_realloc(block, bytes);
  const uint64_t kept = resized == nullptr ? SIZE_MAX : resized == block ? bytes : 0;
  for (size_t i = 0; i < count; ++i) {
    const Inside& one = inside_block[i];
    if (one.mutex - Address(block) + sizeof(pthread_mutex_t) <= kept) {
      Withdraw(one.freed);
      Follow(one.mutex);
    } else {
      Finish(one.freed);
    }
  }
  if (resized == nullptr) {
    Withdraw(given_up);
  } else {
    Finish(given_up);
  }
  return resized;
}

void Load() noexcept {
  next_mutex_init = reinterpret_cast<decltype(next_mutex_init)>(dlsym(RTLD_NEXT, "pthread_mutex_init"));
  stdio_buffers = reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, "_IO_file_doallocate"));
  next_mutex_destroy = reinterpret_cast<decltype(next_mutex_destroy)>(dlsym(RTLD_NEXT, "pthread_mutex_destroy"));
}

__attribute__((constructor)) void OnLoad() {
  Quiet quiet;
  Load();
  RememberLibraryPath();
  const char* text = getenv("CUAUDIT_OPTIONS");
  if (text == nullptr) return;
  static constinit InterposeOptions options;
  char message[512];
  // The driver drop-in reports a bad option; here it only means silence.
  if (ParseOptions(text, &options, message, sizeof(message)) != nullptr || options.journal[0] == '\0') return;
  if (journal.Open(options.journal) != nullptr) return;
  if (&__asan_init != nullptr || &__lsan_do_leak_check != nullptr) {
    journal.header().flags.fetch_or(kHostProbesSkipped, std::memory_order_relaxed);
    return;
  }
  stacks.Attach(&journal, true);
  pthread_atfork(nullptr, nullptr, [] { stacks.AfterFork(); });
  journal.header().flags.fetch_or(kHostProbesActive, std::memory_order_relaxed);
  active.store(true, std::memory_order_release);
}

}  // namespace
}  // namespace cuaudit::faults

using namespace cuaudit::faults;

#define CUAUDIT_EXPORT extern "C" __attribute__((visibility("default")))

// Called by the driver drop-in in a child that goes on alone: what comes is written to a journal of its own.
CUAUDIT_EXPORT void cuaudit_host_continue(void* header, void* records, uint32_t self, uint32_t as) {
  if (!active.load(std::memory_order_relaxed)) return;
  journal.Continue(static_cast<JournalHeader*>(header), static_cast<Record*>(records));
  known_as.store(as, std::memory_order_relaxed);
  own_id.store(self, std::memory_order_relaxed);
}

CUAUDIT_EXPORT void* malloc(size_t bytes) noexcept { return Allocated(__libc_malloc(bytes), bytes, __builtin_return_address(0)); }

CUAUDIT_EXPORT void* calloc(size_t count, size_t bytes) noexcept {
  return Allocated(__libc_calloc(count, bytes), count * bytes, __builtin_return_address(0));
}

CUAUDIT_EXPORT void* realloc(void* block, size_t bytes) noexcept {
  if (!Watching()) return __libc_realloc(block, bytes);
  if (block != nullptr && bytes != 0) return Allocated(Resized(block, bytes), bytes, __builtin_return_address(0));
  Deallocating(block);  // realloc(p, 0) is free
  return Allocated(__libc_realloc(block, bytes), bytes, __builtin_return_address(0));
}

CUAUDIT_EXPORT void* memalign(size_t alignment, size_t bytes) noexcept {
  return Allocated(__libc_memalign(alignment, bytes), bytes, __builtin_return_address(0));
}

CUAUDIT_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return Allocated(__libc_memalign(alignment, bytes), bytes, __builtin_return_address(0));
}

CUAUDIT_EXPORT void* valloc(size_t bytes) noexcept {
  return Allocated(__libc_memalign(PageBytes(), bytes), bytes, __builtin_return_address(0));
}

CUAUDIT_EXPORT void* pvalloc(size_t bytes) noexcept {
  const size_t page = PageBytes();
  if (bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  const size_t whole = (bytes + page - 1) & ~(page - 1);
  return Allocated(__libc_memalign(page, whole), whole, __builtin_return_address(0));
}

CUAUDIT_EXPORT int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  const int saved = errno;
  void* memory = __libc_memalign(alignment, bytes);
  errno = saved;
  if (memory == nullptr) return ENOMEM;
  *block = Allocated(memory, bytes, __builtin_return_address(0));
  return 0;
}

CUAUDIT_EXPORT void free(void* block) noexcept {
  Deallocating(block);
  __libc_free(block);
}

CUAUDIT_EXPORT void* dlopen(const char* file, int flags) {
  void* handle = OpenAsCaller(file, flags, __builtin_return_address(0));
  if (handle != nullptr && Watching()) Write(HostCall::Dlopen, Address(handle), 0);
  return handle;
}

CUAUDIT_EXPORT int dlclose(void* handle) noexcept {
  if (Watching()) Write(HostCall::Dlclose, Address(handle), 0);
  return NextDlclose(handle);
}

CUAUDIT_EXPORT int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes) noexcept {
  if (next_mutex_init == nullptr) Load();
  const int result = next_mutex_init(mutex, attributes);
  if (result == 0 && Watching()) {
    Follow(Address(mutex));
    Write(HostCall::MutexInit, Address(mutex), 0);
  }
  return result;
}

CUAUDIT_EXPORT int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
  if (next_mutex_destroy == nullptr) Load();
  if (Watching()) {
    const bool locked = MutexTable::Locked(Address(mutex));
    mutexes.Remove(Address(mutex));
    Write(locked ? HostCall::MutexDestroyedLocked : HostCall::MutexDestroy, Address(mutex), 0);
  }
  return next_mutex_destroy(mutex);
}
