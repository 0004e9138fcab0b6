// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/managed.h"

namespace cuaudit::sim {
namespace {

// Makes a boundary at `address`; answers the index of the part that begins there.
std::size_t Cut(World& world, Managed* managed, std::uint64_t begin, std::uint64_t address, bool* full) {
  for (std::size_t i = 0; i < managed->parts.size(); ++i) {
    if (begin == address) return i;
    const std::uint64_t end = managed->parts[i].end;
    if (address < end) {
      if (!managed->parts.Push(world.arena, managed->parts[managed->parts.size() - 1])) {
        *full = true;
        return i;
      }
      for (std::size_t at = managed->parts.size() - 1; at > i; --at) managed->parts[at] = managed->parts[at - 1];
      managed->parts[i].end = address;
      return i + 1;
    }
    begin = end;
  }
  return managed->parts.size();
}

}  // namespace

Parts CutParts(World& world, Range* range, std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t range_end = range->base + (range->size + kPage - 1) / kPage * kPage;
  if (range->managed == nullptr) {
    Managed* const managed = world.arena.New<Managed>();
    if (managed == nullptr) return {};
    Part all;
    all.end = range_end;
    if (!managed->parts.Push(world.arena, all)) {
      world.arena.Delete(managed);
      return {};
    }
    range->managed = managed;
  }
  const std::uint64_t first = address / kPage * kPage;
  std::uint64_t last = (address + bytes + kPage - 1) / kPage * kPage;
  if (last > range_end) last = range_end;
  bool full = false;
  const std::size_t from = Cut(world, range->managed, range->base, first < range->base ? range->base : first, &full);
  const std::size_t to = Cut(world, range->managed, range->base, last, &full);
  if (full) return {};
  return {range->managed->parts.begin() + from, range->managed->parts.begin() + to};
}

Part Common(const World&, const Range* range, std::uint64_t address, std::uint64_t bytes) noexcept {
  Part common;
  if (range->managed == nullptr) return common;
  bool any = false;
  std::uint64_t begin = range->base;
  for (const Part& part : range->managed->parts) {
    if (begin < address + bytes && part.end > address) {
      if (!any) common = part;
      any = true;
      common.read_mostly = common.read_mostly && part.read_mostly;
      common.accessed_by &= part.accessed_by;
      if (common.preferred != part.preferred) common.preferred = {};
      if (common.prefetched != part.prefetched) common.prefetched = {};
    }
    begin = part.end;
  }
  return common;
}

void DropParts(World& world, Range* range) noexcept {
  if (range->managed == nullptr) return;
  range->managed->parts.Clear(world.arena);
  world.arena.Delete(range->managed);
  range->managed = nullptr;
}

}  // namespace cuaudit::sim
