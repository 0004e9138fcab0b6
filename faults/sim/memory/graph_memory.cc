// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/graph_memory.h"

#include "faults/sim/memory/chunks.h"
#include "faults/sim/memory/memory.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kGraphStep = std::uint64_t{2} << 20;

}  // namespace

GraphMemory* FindGraphMemory(const World& world, CUdeviceptr address) noexcept {
  for (GraphMemory* const memory : world.graph_memory) {
    if (memory->address == address) return memory;
  }
  return nullptr;
}

bool IsGraphMemory(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept {
  for (const GraphMemory* const memory : world.graph_memory) {
    if (address - memory->address < memory->size) return bytes <= memory->size - (address - memory->address);
  }
  return false;
}

void DropGraphMemory(World& world, GraphMemory* memory) noexcept {
  if (--memory->references != 0) return;
  if (memory->counted) world.devices[memory->device].graph_used -= (memory->size + 511) / 512 * 512;
  world.device_memory.Free(world.arena, memory->block);
  world.graph_memory.EraseValue(memory);
  world.arena.Delete(memory);
}

void TrimGraphMemory(World& world, int device) noexcept {
  DeviceState& state = world.devices[device];
  for (GraphMemory* const memory : world.graph_memory) {
    if (memory->device != device || !memory->counted || memory->live != 0) continue;
    memory->counted = false;
    state.graph_used -= (memory->size + 511) / 512 * 512;
  }
  const std::uint64_t keep = (state.graph_used + kGraphStep - 1) / kGraphStep * kGraphStep;
  if (keep >= state.graph_reserved) return;
  Discharge(world, device, state.graph_reserved - keep);
  state.graph_reserved = keep;
}

void ReleaseGraphRange(World& world, Range* range, bool all) noexcept {
  GraphMemory* const memory = range->graph;
  if (!all && --memory->live != 0) return;
  memory->live = 0;
  memory->range = nullptr;
  Forget(world, range);
  DropGraphMemory(world, memory);
}

bool ReserveGraphMemory(World& world, int ordinal, std::uint64_t used) noexcept {
  DeviceState& device = world.devices[ordinal];
  const std::uint64_t wanted = (used + kGraphStep - 1) / kGraphStep * kGraphStep;
  if (wanted > device.graph_reserved) {
    if (!Charge(world, ordinal, wanted - device.graph_reserved)) return false;
    device.graph_reserved = wanted;
  }
  if (device.graph_reserved > device.graph_reserved_high) device.graph_reserved_high = device.graph_reserved;
  if (used > device.graph_used_high) device.graph_used_high = used;
  device.graph_used = used;
  return true;
}

}  // namespace cuaudit::sim
