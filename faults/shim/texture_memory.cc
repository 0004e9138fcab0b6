// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/texture_memory.h"

#include <string.h>

#include "faults/driver/kinds.h"
#include "faults/journal/launch_words.h"
#include "faults/shim/told_objects.h"

namespace cuaudit::faults {
namespace {

using driver::BaseId;
using driver::Kind;

// Handles are user addresses or small numbers, so the topmost byte is free for the kind.
std::uint64_t Key(Kind kind, std::uint64_t handle) noexcept { return handle == 0 ? 0 : handle ^ static_cast<std::uint64_t>(kind) << 56U; }

}  // namespace

void TextureMemory::After(const Passage& passage) noexcept {
  const auto& value = passage.value;
  const BaseId base = driver::BaseOf(passage.id);
  switch (base) {
    case BaseId::TexObjectCreate:
    case BaseId::SurfObjectCreate: {
      const Footing footing = FootingOf(passage);
      std::uint64_t handle = 0;
      if (value[0] != 0) memcpy(&handle, reinterpret_cast<const void*>(value[0]), sizeof(handle));
      const Kind kind = base == BaseId::TexObjectCreate ? Kind::TextureObject : Kind::SurfaceObject;
      if (IsDistinctive(handle) && footing.handle != 0) Add(Key(kind, handle), Key(footing.kind, footing.handle));
      return;
    }
    case BaseId::TexObjectDestroy:
      return Remove(Key(Kind::TextureObject, value[0]));
    case BaseId::SurfObjectDestroy:
      return Remove(Key(Kind::SurfaceObject, value[0]));
    case BaseId::ArrayDestroy:
      return End(Key(Kind::Array, value[0]));
    case BaseId::MipmappedArrayDestroy:
      return End(Key(Kind::MipmappedArray, value[0]));
    case BaseId::MemFree:
    case BaseId::MemFreeAsync:
      return End(Key(Kind::DeviceMemory, value[0]));
    default:
      return;
  }
}

void TextureMemory::Add(std::uint64_t object, std::uint64_t memory) noexcept {
  Remove(object);  // the driver reuses the handle of an object that ended unseen, with its context
  for (Place& place : place_) {
    std::uint64_t empty = 0;
    if (!place.object.compare_exchange_strong(empty, object, std::memory_order_acq_rel)) continue;
    place.memory.store(memory, std::memory_order_release);
    count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void TextureMemory::Remove(std::uint64_t object) noexcept {
  if (object == 0 || count_.load(std::memory_order_relaxed) == 0) return;
  for (Place& place : place_) {
    if (place.object.load(std::memory_order_acquire) != object) continue;
    place.memory.store(0, std::memory_order_relaxed);
    if (place.gone.exchange(false, std::memory_order_relaxed)) gone_.fetch_sub(1, std::memory_order_relaxed);
    if (place.object.compare_exchange_strong(object, 0, std::memory_order_acq_rel)) count_.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

void TextureMemory::End(std::uint64_t memory) noexcept {
  if (memory == 0 || count_.load(std::memory_order_relaxed) == 0) return;
  for (Place& place : place_) {
    if (place.memory.load(std::memory_order_acquire) != memory) continue;
    if (!place.gone.exchange(true, std::memory_order_relaxed)) gone_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace cuaudit::faults
