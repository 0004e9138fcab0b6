// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/chunks.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{2} << 20;

struct Chunks {
  std::uint64_t first;
  std::uint64_t last;
};

Chunks ChunksOf(const World& world, const Block* block) noexcept {
  const std::uint64_t offset = block->base - world.device_memory.base();
  return {offset / kChunk, (offset + block->size - 1) / kChunk};
}

}  // namespace

bool ChargeChunks(World& world, int device, const Block* block) noexcept {
  if (world.chunks == nullptr) {
    const std::size_t bytes = world.device_memory.size() / kChunk * sizeof(Chunk);
    world.chunks = static_cast<Chunk*>(world.arena.Allocate(bytes));
    if (world.chunks == nullptr) return false;
    std::memset(world.chunks, 0, bytes);
  }
  const Chunks span = ChunksOf(world, block);
  std::uint64_t fresh = 0;
  for (std::uint64_t i = span.first; i <= span.last; ++i) fresh += world.chunks[i].blocks == 0 ? 1U : 0U;
  if (!Charge(world, device, fresh * kChunk)) return false;
  for (std::uint64_t i = span.first; i <= span.last; ++i) {
    Chunk& chunk = world.chunks[i];
    if (chunk.blocks == 0) chunk.device = static_cast<std::uint16_t>(device & 7);
    ++chunk.blocks;
  }
  return true;
}

void DischargeChunks(World& world, const Block* block) noexcept {
  const Chunks span = ChunksOf(world, block);
  for (std::uint64_t i = span.first; i <= span.last; ++i) {
    if (--world.chunks[i].blocks == 0) Discharge(world, world.chunks[i].device, kChunk);
  }
}

bool Charge(World& world, int device, std::uint64_t bytes) noexcept {
  DeviceState& state = world.devices[device];
  if (bytes > state.total - state.used) return false;
  state.used += bytes;
  return true;
}

void Discharge(World& world, int device, std::uint64_t bytes) noexcept { world.devices[device].used -= bytes; }

}  // namespace cuaudit::sim
