// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/texture_memory.h"

#include <string.h>

#include "faults/driver/kinds.h"
#include "faults/journal/record.h"
#include "faults/shim/told_objects.h"

namespace cuaudit::faults {
namespace {

using driver::BaseId;
using driver::Kind;

// Handles are user addresses or small numbers, so the topmost byte is free for the kind.
std::uint64_t Key(Kind kind, std::uint64_t handle) noexcept { return handle == 0 ? 0 : handle ^ static_cast<std::uint64_t>(kind) << 56U; }

std::uint64_t Written(std::uint64_t pointer) noexcept {
  std::uint64_t handle = 0;
  if (pointer != 0) memcpy(&handle, reinterpret_cast<const void*>(pointer), sizeof(handle));
  return handle;
}

}  // namespace

void TextureMemory::After(const Passage& passage) noexcept {
  const auto& value = passage.value;
  const BaseId base = driver::BaseOf(passage.id);
  switch (base) {
    case BaseId::TexObjectCreate:
    case BaseId::SurfObjectCreate: {
      const Footing footing = FootingOf(passage);
      const std::uint64_t handle = Written(value[0]);
      const Kind kind = base == BaseId::TexObjectCreate ? Kind::TextureObject : Kind::SurfaceObject;
      if (IsDistinctive(handle) && footing.handle != 0) Add(Key(kind, handle), Key(footing.kind, footing.handle), passage.record->context);
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
    case BaseId::IpcCloseMemHandle:
      return End(Key(Kind::DeviceMemory, value[0]));
    case BaseId::MemUnmap:
      return End(Key(Kind::DeviceMemory, value[0]), value[1]);
    case BaseId::CtxDestroy:
    case BaseId::CtxDetach:
      return EndContext(value[0]);
    case BaseId::DevicePrimaryCtxRetain:
      if (value[1] < kMaxDevices) primary_[value[1]].store(Written(value[0]), std::memory_order_relaxed);
      return;
    case BaseId::DevicePrimaryCtxReset:
      return EndPrimary(static_cast<int>(value[0]));
    default:
      return;
  }
}

void TextureMemory::Add(std::uint64_t object, std::uint64_t memory, std::uint64_t context) noexcept {
  Remove(object);  // the driver reuses the handle of an object that ended unseen, with its context
  for (Place& place : place_) {
    std::uint64_t empty = 0;
    if (!place.object.compare_exchange_strong(empty, object, std::memory_order_acq_rel)) continue;
    place.context.store(context, std::memory_order_relaxed);
    place.memory.store(memory, std::memory_order_release);
    count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  beyond_.fetch_add(1, std::memory_order_relaxed);
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

void TextureMemory::EndPrimary(int device) noexcept {
  if (device >= 0 && static_cast<std::size_t>(device) < kMaxDevices) EndContext(primary_[device].load(std::memory_order_relaxed));
}

void TextureMemory::EndContext(std::uint64_t context) noexcept {
  if (context == 0 || count_.load(std::memory_order_relaxed) == 0) return;
  for (Place& place : place_) {
    const std::uint64_t object = place.object.load(std::memory_order_acquire);
    if (object != 0 && place.context.load(std::memory_order_relaxed) == context) Remove(object);
  }
}

void TextureMemory::End(std::uint64_t memory, std::uint64_t bytes) noexcept {
  if (memory == 0 || count_.load(std::memory_order_relaxed) == 0) return;
  for (Place& place : place_) {
    const std::uint64_t held = place.memory.load(std::memory_order_acquire);
    if (held < memory || held - memory >= bytes) continue;
    if (!place.gone.exchange(true, std::memory_order_relaxed)) gone_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace cuaudit::faults
