// SPDX-License-Identifier: MIT
#include "faults/sim/base/object.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint32_t kGenerationStep = 1021;  // odd, so all 4096 come in turn, and far apart

}  // namespace

driver::Kind KindOf(Tag tag) noexcept {
  using driver::Kind;
  switch (tag) {
    case Tag::Context:
      return Kind::Context;
    case Tag::Stream:
      return Kind::Stream;
    case Tag::Event:
      return Kind::Event;
    case Tag::Pool:
      return Kind::MemoryPool;
    case Tag::Array:
      return Kind::Array;
    case Tag::MipmappedArray:
      return Kind::MipmappedArray;
    case Tag::Texture:
      return Kind::TextureObject;
    case Tag::Surface:
      return Kind::SurfaceObject;
    case Tag::Module:
      return Kind::Module;
    case Tag::Library:
      return Kind::Library;
    case Tag::LinkState:
      return Kind::LinkState;
    case Tag::Graph:
      return Kind::Graph;
    case Tag::Node:
      return Kind::GraphNode;
    case Tag::Executable:
      return Kind::ExecutableGraph;
    case Tag::UserObject:
      return Kind::UserObject;
    case Tag::Physical:
      return Kind::PhysicalMemory;
    case Tag::External:
      return Kind::ExternalMemory;
    case Tag::ExternalSemaphore:
      return Kind::ExternalSemaphore;
    case Tag::Callback:
      return Kind::Callback;
    case Tag::GreenContext:
      return Kind::GreenContext;
    case Tag::TextureReference:
      return Kind::TextureReference;
    case Tag::None:
    case Tag::SurfaceReference:
    case Tag::ResourceDescriptor:
    case Tag::Function:
    case Tag::Kernel:
    case Tag::Conditional:
      return Kind::None;
  }
  return Kind::None;
}

bool HandleTable::NamesNothing(std::uint64_t handle) const noexcept {
  return handle != 0 && Find(handle) == nullptr && !DiedWithContext(handle) && !DiedWithGreen(handle);
}

void HandleTable::Adopt(char* memory, std::size_t slots, std::uint32_t world) noexcept {
  slots_ = reinterpret_cast<Slot*>(memory);
  capacity_ = static_cast<std::uint32_t>(slots);
  prefix_ = (std::uint64_t{1} << 46) | (std::uint64_t{world & 0x3ffU} << 36);
  first_generation_ = (world >> 10) * kGenerationStep & static_cast<std::uint32_t>(kGenerationMask);
  used_ = 1;  // slot 0 stays empty so that no handle looks like a bare prefix
}

bool HandleTable::Insert(Object* object) noexcept {
  std::uint32_t index = 0;
  if (free_count_ > kRest || (used_ == capacity_ && free_count_ != 0)) {
    index = free_first_ - 1;
    free_first_ = slots_[index].next_free;
    if (--free_count_ == 0) free_last_ = 0;
  } else if (used_ < capacity_) {
    index = used_++;
  } else {
    return false;
  }
  Slot& slot = slots_[index];
  slot.generation = (slot.generation + 1U) & static_cast<std::uint32_t>(kGenerationMask);
  slot.object = object;
  slot.next_free = 0;
  slot.note = 0;
  object->handle = prefix_ | (GenerationOf(slot) << 24) | (std::uint64_t{index} << 4);
  return true;
}

void HandleTable::Remove(Object* object) noexcept {
  const std::uint32_t index = static_cast<std::uint32_t>((object->handle >> 4) & kIndexMask);
  slots_[index].object = nullptr;
  slots_[index].died_with = static_cast<std::uint32_t>(ending) & 3U;
  if (free_last_ != 0) {
    slots_[free_last_ - 1].next_free = (index + 1) & 0xffffffU;
  } else {
    free_first_ = index + 1;
  }
  free_last_ = index + 1;
  ++free_count_;
}

}  // namespace cuaudit::sim
