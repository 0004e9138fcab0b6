// SPDX-License-Identifier: MIT
// object.h: the base of every object that has a handle, and the table that tells a live handle from a stale, foreign or invented one.
//
//   Owns      the slots; objects belong to the arena.
//   Threads   not thread-safe; the caller holds the world's lock.
//   Handles   a handle consists of world, slot and generation. Freed slots wait in a queue, so a world repeats a value only after millions
//             of objects. Worlds 1024 apart share a world number, so each starts with its own generations: the first handle of a slot
//             repeats after 4 million worlds.
//   Errors    Find returns nullptr for anything but a live object of that tag.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/driver/kinds.h"
#include "faults/sim/base/arena.h"

namespace cuaudit::sim {

struct Context;

enum class Tag : std::uint8_t {
  None,
  Context,
  Stream,
  Event,
  Pool,
  Array,
  MipmappedArray,
  Texture,
  Surface,
  Module,
  Function,
  Library,
  Kernel,
  LinkState,
  Graph,
  Node,
  Executable,
  Conditional,
  UserObject,
  Physical,
  External,
  ExternalSemaphore,
  TextureReference,
  SurfaceReference,
  Callback,
  GreenContext,
  ResourceDescriptor,
};
driver::Kind KindOf(Tag tag) noexcept;

struct Object {
  Tag tag = Tag::None;
  bool counted = false;  // false: internal, such as a default stream or an array level; not in World::live
  std::uint64_t handle = 0;
  Context* owner = nullptr;  // destroyed with this context; null: outlives contexts
  Object* next = nullptr;    // in the owner's or the world's list
  Object* previous = nullptr;
};

struct ObjectList {
  Object* first = nullptr;
  void Add(Object* object) noexcept {
    object->next = first;
    object->previous = nullptr;
    if (first != nullptr) first->previous = object;
    first = object;
  }
  void Remove(Object* object) noexcept {
    (object->previous != nullptr ? object->previous->next : first) = object->next;
    if (object->next != nullptr) object->next->previous = object->previous;
    object->next = object->previous = nullptr;
  }
};

// Why objects are being removed right now: the context or green context that they live in ends.
enum class Ending : std::uint8_t { Nothing, Context, Green };

class HandleTable {
 public:
  // Requires zeroed memory with room for `slots` slots.
  static constexpr std::size_t kSlotBytes = 16;
  void Adopt(char* memory, std::size_t slots, std::uint32_t world) noexcept;
  char* memory() const noexcept { return reinterpret_cast<char*>(slots_); }
  std::size_t used_bytes() const noexcept { return used_ * sizeof(Slot); }
  bool Insert(Object* object) noexcept;  // sets object->handle; false when full
  void Remove(Object* object) noexcept;
  Object* Find(std::uint64_t handle) const noexcept {
    if ((handle & kPrefixMask) != prefix_) return nullptr;
    const std::uint64_t index = (handle >> 4) & kIndexMask;
    if (index >= used_) return nullptr;
    const Slot& slot = slots_[index];
    return slot.object != nullptr && slot.object->handle == handle ? slot.object : nullptr;
  }
  // True for the last handle of a slot that has not been reused.
  bool IsStale(std::uint64_t handle) const noexcept {
    if ((handle & kPrefixMask) != prefix_) return false;
    const std::uint64_t index = (handle >> 4) & kIndexMask;
    return index < used_ && slots_[index].object == nullptr && GenerationOf(slots_[index]) == ((handle >> 24) & kGenerationMask);
  }
  // True for a stale handle whose object was destroyed with its context, or with its green context.
  bool DiedWithContext(std::uint64_t handle) const noexcept {
    return IsStale(handle) && slots_[(handle >> 4) & kIndexMask].died_with == static_cast<std::uint32_t>(Ending::Context);
  }
  bool DiedWithGreen(std::uint64_t handle) const noexcept {
    return IsStale(handle) && slots_[(handle >> 4) & kIndexMask].died_with == static_cast<std::uint32_t>(Ending::Green);
  }
  // True for a handle whose object was destroyed, and for one that was never handed out: no live object, none that went with its context.
  bool NamesNothing(std::uint64_t handle) const noexcept;
  // A note that a call may still read when the object is gone; 0: there is none, or the slot was reused. Graph nodes leave their type and
  // one, pools kPoolNote and the ordinal of their device, kLostNote what the genuine driver does not know to be gone,
  // events kResetNote when their context was reset.
  static constexpr unsigned kPoolNote = 64;
  static constexpr unsigned kLostNote = 128;
  static constexpr unsigned kResetNote = 129;
  void LeaveNote(std::uint64_t stale, std::uint8_t note) noexcept { slots_[(stale >> 4) & kIndexMask].note = note; }
  unsigned NoteOf(std::uint64_t handle) const noexcept { return IsStale(handle) ? slots_[(handle >> 4) & kIndexMask].note : 0; }
  Ending ending = Ending::Nothing;
  // For loops over all slots: the object in the slot, or nullptr.
  std::size_t used() const noexcept { return used_; }
  const Object* At(std::size_t slot) const noexcept { return slots_[slot].object; }

 private:
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << 20) - 1;
  static constexpr std::uint64_t kGenerationMask = (std::uint64_t{1} << 12) - 1;
  static constexpr std::uint64_t kPrefixMask = ~((std::uint64_t{1} << 36) - 1) | 0xf;
  static constexpr std::uint32_t kRest = 1024;  // a freed slot is reused after this many others were freed
  struct Slot {
    Object* object;
    std::uint32_t generation : 30;
    std::uint32_t died_with : 2;   // Ending
    std::uint32_t next_free : 24;  // index + 1
    std::uint32_t note : 8;
  };
  static_assert(sizeof(Slot) == kSlotBytes);
  std::uint64_t GenerationOf(const Slot& slot) const noexcept { return (slot.generation + first_generation_) & kGenerationMask; }

  Slot* slots_ = nullptr;
  std::uint32_t first_generation_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t used_ = 0;
  std::uint32_t free_first_ = 0;
  std::uint32_t free_last_ = 0;
  std::uint32_t free_count_ = 0;
  std::uint64_t prefix_ = 0;
};

template <typename Handle>
Handle ToHandle(const Object* object) noexcept {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(object->handle));
  } else {
    return static_cast<Handle>(object->handle);
  }
}

}  // namespace cuaudit::sim
