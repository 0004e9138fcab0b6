// SPDX-License-Identifier: MIT
// world_state.h: the world itself: its lock, its records, its devices and threads.
//
//   Owns      everything. The World lies at the start of its own arena.
//   Threads   the lock protects all fields except `closed`, and `alive`, which a fork clears in the child.
//   Errors    allocation returns nullptr when the arena is full; Find returns nullptr for anything but a live object.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "faults/sim/base/arena.h"
#include "faults/sim/device/profile.h"
#include "faults/sim/state/objects.h"
#include "faults/sim/state/order.h"
#include "faults/sim/world.h"

namespace cuaudit::sim {

// Which client code runs inside the current driver call.
enum class Inside : std::uint8_t { Nothing, HostFunction, HostKernel, Destructor };

// A thread's state in this world. Found by a serial number that no other thread ever has.
struct Thread {
  std::uint64_t serial = 0;
  Thread* next = nullptr;
  Inside inside = Inside::Nothing;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Vector<std::uint64_t> stack;  // context handles, the current one last
};

// The calling thread's serial number, the library's only thread-local state; 0 until the thread's first call.
std::uint64_t ThreadSerial() noexcept;

struct DeviceState {
  std::uint64_t graph_used = 0;  // bytes that graphs own
  std::uint64_t graph_used_high = 0;
  std::uint64_t graph_reserved = 0;
  std::uint64_t graph_reserved_high = 0;
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  Context* primary = nullptr;
  Pool* default_pool = nullptr;
  Pool* current_pool = nullptr;
  std::uint64_t destroyed_pool = 0;  // was made current after its end, instead of current_pool
  std::uint32_t primary_flags = 0;
};

// The pools of a place that is not device-pinned; null: not requested yet.
struct PlacePools {
  Pool* standard = nullptr;
  Pool* current = nullptr;
};

// 2 MiB of device memory (memory.h).
struct Chunk {
  std::uint16_t blocks : 13;  // at most 4096 of 512 bytes
  std::uint16_t device : 3;   // the device that is charged
};
static_assert(kMaxDevices == 8);

// A user object's destructor, which runs after the lock is released.
struct Farewell {
  CUhostFn function;
  void* argument;
};

// A call that its model refused.
struct RefusedCall {
  std::uint32_t call;    // driver::CallId
  std::uint32_t result;  // CUresult
};
inline constexpr std::size_t kRefusals = 64;

// A misuse that the current call has reported.
struct Told {
  driver::MisuseRule rule;
  std::uint64_t other;
  std::uint64_t at;
};

// Work that ends hollow touches no memory of the program and calls none of its code (RunHollow).
struct Hollow {
  bool all = false;          // whatever runs now
  std::uint64_t before = 0;  // operations with a lower ticket, whenever they run
  bool skipped = false;      // something that might have written to memory has ended hollow
  bool passes = false;       // so waits for values are over
};

class World {
 public:
  pthread_mutex_t lock;
  pthread_cond_t turn;
  std::atomic<std::uint32_t>* alive = nullptr;  // the mark of process.h: 1; 0 in a forked child
  std::atomic<bool> closed{false};              // the process is exiting
  Arena arena;
  HandleTable handles;
  RangeTree ranges;
  Region device_memory;     // clients cannot dereference these addresses
  Region host_memory;       // pinned and managed memory
  Chunk* chunks = nullptr;  // one for each 2 MiB of device_memory
  Reservation* reservations = nullptr;
  ObjectList free_standing;  // objects that outlive contexts
  DeviceState devices[kMaxDevices];
  int device_count = 1;
  const Profile* profile = nullptr;
  Coredump* coredump = nullptr;  // null: the driver's defaults
  char device_name[64] = {};
  std::uint64_t seed = 1;
  bool initialized = false;
  std::uint64_t live[driver::kKindCount] = {};

  std::uint64_t next_ticket = 1;
  std::uint64_t next_id = 1;
  std::uint64_t clock = 0;    // virtual nanoseconds, the host's time
  std::uint64_t now = 0;      // virtual time inside the current operation
  std::uint64_t pending = 0;  // operations queued or running
  std::uint32_t running = 0;  // number of host functions running without the lock
  std::uint32_t waiting_turns = 0;
  Schedule schedule = Schedule::Lazy;
  OnUndefined undefined = OnUndefined::Error;
  std::uint64_t random = 0;       // state of Schedule::Random
  std::uint64_t patience_ms = 0;  // see value_work.h
  std::uint64_t stuck_since = 0;  // real nanoseconds; 0: something can run
  Vector<Stream*> busy_streams;   // streams with operations, unsorted
  Order order;
  History* histories = nullptr;
  std::uint64_t spans = 0;        // number of spans in all histories
  std::uint64_t sweep_at = 4096;  // number of spans at which finished ones are dropped
  Vector<Told> told;
  Vector<Freed> freed;         // a ring buffer
  std::size_t freed_next = 0;  // index of the next entry to write
  void (*on_misuse)(void* observer, const driver::Misuse& misuse) = nullptr;
  std::uint64_t (*origin)(void* observer) = nullptr;
  void* observer = nullptr;
  std::uint64_t running_for = 0;  // origin of the work that runs: of the call that queued it
  bool (*on_awaited)(void* observer) = nullptr;
  bool attended = false;  // somebody calls RunUnattended
  Hollow hollow;
  std::uint64_t calls = 0;     // calls since then
  std::uint32_t captures = 0;  // number of captures in progress
  Capture* capture_list = nullptr;
  Vector<Farewell> farewells;
  RefusedCall refusals[kRefusals] = {};  // a ring buffer
  std::uint64_t refused = 0;             // number of calls that were refused
  Vector<CallbackEntry*> listeners;      // of log messages
  Vector<Pool*> pools;
  PlacePools place_pools[2][kMaxDevices + 3] = {};  // pinned, managed; devices, the host, its node, nowhere
  Vector<GraphMemory*> graph_memory;
  Vector<const cuaudit_kernel*> host_kernels;
  const std::atomic<cuaudit_kernel*>* process_kernels = nullptr;
  std::atomic<std::uint64_t> own_kernel_counts[kKernelCounts] = {};
  std::atomic<std::uint64_t>* kernel_counts = own_kernel_counts;
  ShareFile share;
  Vector<Binding*> bindings;       // of arrays that got their memory later
  Vector<Backing*> file_backings;  // physical memory that lies in files
  Vector<ExternalSemaphore*> semaphores;

  static constexpr std::size_t kThreadBuckets = 256;
  Thread* threads[kThreadBuckets] = {};
  Shell shell;
  char* book_start = nullptr;  // start of the arena

  Thread* FindThread(std::uint64_t serial) noexcept {
    for (Thread* thread = threads[serial % kThreadBuckets]; thread != nullptr; thread = thread->next) {
      if (thread->serial == serial) return thread;
    }
    return AddThread(serial);
  }

  template <typename T>
  T* Find(std::uint64_t handle) const noexcept {
    Object* const object = handles.Find(handle);
    return object != nullptr && object->tag == T::kTag ? static_cast<T*>(object) : nullptr;
  }
  template <typename T, typename Handle>
  T* Find(Handle* handle) const noexcept {
    return Find<T>(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle)));
  }

  template <typename Handle>
  bool IsStale(Handle* handle) const noexcept {
    return handles.IsStale(reinterpret_cast<std::uintptr_t>(handle));
  }
  template <typename Handle>
  bool DiedWithContext(Handle* handle) const noexcept {
    return handles.DiedWithContext(reinterpret_cast<std::uintptr_t>(handle));
  }
  template <typename Handle>
  bool DiedWithGreen(Handle* handle) const noexcept {
    return handles.DiedWithGreen(reinterpret_cast<std::uintptr_t>(handle));
  }
  // True for a stale handle whose object did not go with a context.
  template <typename Handle>
  bool Destroyed(Handle* handle) const noexcept {
    return IsStale(handle) && !DiedWithContext(handle) && !DiedWithGreen(handle);
  }

  // Makes a live object with a handle. owner null: it outlives contexts.
  template <typename T>
  T* Make(Context* owner, bool counted = true) noexcept {
    T* const object = arena.New<T>();
    if (object == nullptr) return nullptr;
    object->tag = T::kTag;
    object->owner = owner;
    object->counted = counted;
    if (!handles.Insert(object)) {
      arena.Delete(object);
      return nullptr;
    }
    (owner != nullptr ? owner->children : free_standing).Add(object);
    if (counted) ++live[static_cast<std::size_t>(KindOf(T::kTag))];
    return object;
  }
  // Ends the handle; the record stays until the caller frees it.
  void Retire(Object* object) noexcept {
    handles.Remove(object);
    (object->owner != nullptr ? object->owner->children : free_standing).Remove(object);
    if (object->counted) --live[static_cast<std::size_t>(KindOf(object->tag))];
  }
  template <typename T>
  void Destroy(T* object) noexcept {
    Retire(object);
    arena.Delete(object);
  }

  void Count(driver::Kind kind, std::int64_t change) noexcept {
    live[static_cast<std::size_t>(kind)] += static_cast<std::uint64_t>(change);
  }

 private:
  Thread* AddThread(std::uint64_t serial) noexcept;
};

}  // namespace cuaudit::sim
