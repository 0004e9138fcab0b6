// SPDX-License-Identifier: MIT
// world_state.h: the world itself: its lock, its books, its devices and threads.
//
//   Owns      everything; lives at the start of its own arena.
//   Threads   the fields belong to the lock, except `alive`, which a fork wipes in the child.
//   Errors    allocation answers nullptr; Find answers nullptr for what is no live object.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "faults/sim/objects.h"
#include "faults/sim/world.h"

namespace cuaudit::sim {

inline constexpr int kMaxDevices = 8;

// What a thread keeps in this world. Found by a number that no other thread ever has.
struct Thread {
  std::uint64_t serial = 0;
  Thread* next = nullptr;
  bool in_callback = false;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Vector<std::uint64_t> stack;  // context handles, the current one last
};

// The only thread-local state of the library: 0 until the thread's first call.
std::uint64_t ThreadSerial() noexcept;

struct DeviceState {
  std::uint64_t total = 0;
  std::uint64_t used = 0;
  Context* primary = nullptr;
  Pool* default_pool = nullptr;
  Pool* current_pool = nullptr;
  std::uint32_t primary_flags = 0;
};

// A host function to be called once the lock is free: the destructor of a user object.
struct Farewell {
  CUhostFn function;
  void* argument;
};

class World {
 public:
  pthread_mutex_t lock;
  pthread_cond_t turn;
  const std::uint32_t* alive = nullptr;  // 1; 0 in a forked child
  Arena arena;
  HandleTable handles;
  RangeTree ranges;
  Region device_memory;  // addresses that clients cannot dereference
  Region host_memory;    // pinned and managed memory
  Reservation* reservations = nullptr;
  ObjectList free_standing;  // objects that outlive contexts
  DeviceState devices[kMaxDevices];
  int device_count = 1;
  char device_name[64] = {};
  std::uint64_t seed = 1;
  bool initialized = false;
  std::uint64_t live[driver::kKindCount] = {};

  std::uint64_t next_ticket = 1;
  std::uint64_t next_id = 1;
  std::uint64_t clock = 0;     // virtual nanoseconds
  std::uint64_t pending = 0;   // operations queued or running
  std::uint64_t executor = 0;  // serial of the thread that runs operations, 0: none
  std::uint32_t waiting_turns = 0;
  std::uint32_t captures = 0;  // captures under way
  Capture* capture_list = nullptr;
  Vector<Farewell> farewells;
  Vector<Pool*> pools;

  static constexpr std::size_t kThreadBuckets = 256;
  Thread* threads[kThreadBuckets] = {};
  char* mapping = nullptr;
  std::size_t mapping_bytes = 0;
  std::size_t alive_bytes = 0;

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

  // A live object with a handle. owner null: it outlives contexts.
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
  // Ends the handle; the record stays until Discard.
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
