// SPDX-License-Identifier: MIT
// object.h: what every handle stands for, and the table that tells a live handle from a stale, foreign or invented one.
//
//   Owns      the slots; objects belong to the arena.
//   Threads   not thread-safe; the world's lock is held by every caller.
//   Errors    Find answers nullptr for anything that is not a live object of that tag. A handle is a number: world, slot and
//             generation. Freed slots rest in a queue, so a world repeats a value only after millions of objects. Worlds 1024 apart share
//             their number, so each of them begins with generations of its own: the first handle of a slot comes again after 4 million
//             worlds.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/driver/kinds.h"
#include "faults/sim/arena.h"

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
  bool counted = false;  // false: internal, such as a default stream or an array level
  std::uint64_t handle = 0;
  Context* owner = nullptr;  // dies with it; null: outlives contexts
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

// What removes objects right now: the end of what they live in.
enum class Ending : std::uint8_t { Nothing, Context, Green };

class HandleTable {
 public:
  // `memory` is zeroed and has room for `slots` slots.
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
  // True for the last handle of a slot that nobody has taken since.
  bool IsStale(std::uint64_t handle) const noexcept {
    if ((handle & kPrefixMask) != prefix_) return false;
    const std::uint64_t index = (handle >> 4) & kIndexMask;
    return index < used_ && slots_[index].object == nullptr && GenerationOf(slots_[index]) == ((handle >> 24) & kGenerationMask);
  }
  // Such a handle whose object died with its context.
  bool DiedWithContext(std::uint64_t handle) const noexcept {
    return IsStale(handle) && slots_[(handle >> 4) & kIndexMask].died_with == static_cast<std::uint32_t>(Ending::Context);
  }
  bool DiedWithGreen(std::uint64_t handle) const noexcept {
    return IsStale(handle) && slots_[(handle >> 4) & kIndexMask].died_with == static_cast<std::uint32_t>(Ending::Green);
  }
  Ending ending = Ending::Nothing;
  // For walks over all slots: what is in the slot now.
  std::size_t used() const noexcept { return used_; }
  const Object* At(std::size_t slot) const noexcept { return slots_[slot].object; }

 private:
  static constexpr std::uint64_t kIndexMask = (std::uint64_t{1} << 20) - 1;
  static constexpr std::uint64_t kGenerationMask = (std::uint64_t{1} << 12) - 1;
  static constexpr std::uint64_t kPrefixMask = ~((std::uint64_t{1} << 36) - 1) | 0xf;
  static constexpr std::uint32_t kRest = 1024;  // freed slots wait behind this many others
  struct Slot {
    Object* object;
    std::uint32_t generation : 30;
    std::uint32_t died_with : 2;  // Ending
    std::uint32_t next_free;      // index + 1
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
