// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/order/tell.h"

namespace cuaudit::sim {

std::uint64_t Origin(const World& world) noexcept { return world.origin == nullptr ? 0 : world.origin(world.observer); }

void TellMisuse(World& world, driver::MisuseRule rule, Kind kind, std::uint64_t at, std::uint64_t bytes, std::uint64_t origin,
                std::uint64_t other, bool refused_wait) noexcept {
  if (world.on_misuse == nullptr) return;
  for (const Told& told : world.told) {
    if (told.rule == rule && told.other == other && (other != 0 || told.at == at)) return;
  }
  (void)world.told.Push(world.arena, Told{rule, other, at});
  driver::Misuse misuse;
  misuse.rule = rule;
  misuse.kind = kind;
  misuse.object = at;
  misuse.bytes = bytes;
  misuse.origin = origin;
  misuse.other = other;
  misuse.refused_wait = refused_wait;
  world.on_misuse(world.observer, misuse);
}

}  // namespace cuaudit::sim
