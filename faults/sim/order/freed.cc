// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/history.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/order/tell.h"
#include "faults/sim/state/world_state.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t kMost = 1024;
constexpr std::uint64_t kBefore = 64;  // bytes; programs that index from 1 hold a pointer to before their first element

bool IsBeforeSomething(const World& world, std::uint64_t address) {
  const Range* const after = world.ranges.FirstFrom(address);
  return after != nullptr && after->base - address <= kBefore;
}

bool IsReserved(const World& world, std::uint64_t address) {
  for (const Reservation* at = world.reservations; at != nullptr; at = at->next) {
    if (address - at->base < at->size) return true;
  }
  return false;
}

}  // namespace

void RememberFreed(World& world, const Range* range) noexcept {
  if (world.on_misuse == nullptr || range->region != &world.device_memory) return;
  Freed freed{range->base, range->size, range->kind, {}};
  if (range->history != nullptr) freed.death = range->history->death;
  if (freed.death.stamp.slot == 0) freed.death.origin = Origin(world);
  if (world.freed.size() < kMost) {
    (void)world.freed.Push(world.arena, freed);
  } else {
    world.freed[world.freed_next] = freed;
  }
  world.freed_next = (world.freed_next + 1) % kMost;
}

const Freed* FindFreed(const World& world, std::uint64_t address) noexcept {
  if (world.freed.empty() || !world.device_memory.Contains(address) || world.ranges.Find(address) != nullptr) return nullptr;
  const std::size_t count = world.freed.size();
  for (std::size_t i = 1; i <= count; ++i) {
    const Freed& freed = world.freed[(world.freed_next + count - i) % count];
    if (address - freed.base < freed.bytes) return IsBeforeSomething(world, address) || IsReserved(world, address) ? nullptr : &freed;
  }
  return nullptr;
}

}  // namespace cuaudit::sim
