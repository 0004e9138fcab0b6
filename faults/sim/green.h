// SPDX-License-Identifier: MIT
// green.h: green contexts: a part of a device's multiprocessors, used through the primary context.
//
//   Owns      a green context its view (the CUcontext that stands for it), its default streams, and a hold on the primary context.
//   Threads   the world's lock is held by every caller.
//   Errors    handles of a destroyed green context and of its streams answer CONTEXT_IS_DESTROYED where a device does.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, Green Contexts; sizes of partitions as an H200 (580.159.04) splits them.
#pragma once

#include "faults/sim/call.h"

namespace cuaudit::sim {

// How a device resource came to be, kept in its padding: the driver tells its own from invented ones.
enum class Origin : std::uint32_t { Whole = 0x5eed0001, Group, Remainder };

struct ResourceDescriptor : Object {
  static constexpr Tag kTag = Tag::ResourceDescriptor;
  CUdevice device = 0;
  CUdevResource resource = {};
};

struct GreenContext : Object {
  static constexpr Tag kTag = Tag::GreenContext;
  CUdevice device = 0;
  std::uint64_t id = 0;
  Context* primary = nullptr;
  Context* view = nullptr;
  Stream* standard = nullptr;  // stands for stream 0 while the view is current
  Marker* gate = nullptr;      // what new streams wait for
  CUdevResource resource = {};
};

// Toolkits before 13.0 know only the count.
void SetGroup(CUdevResource* resource, unsigned count, unsigned least, unsigned unit) noexcept;
// `split` and `first` tell the outputs of one split from others and from each other.
void Mark(CUdevResource* resource, Origin origin, CUdevice device, std::uint32_t split = 0, std::uint32_t first = 0) noexcept;
// Outputs of one split, each once.
bool BelongTogether(const CUdevResource& one, const CUdevResource& other) noexcept;
// False for a resource that no call made.
bool OriginOf(const CUdevResource& resource, Origin* origin, CUdevice* device) noexcept;
CUdevResource WholeDevice(const World& world, CUdevice device) noexcept;

// The green context whose view is current; nullptr: none is.
GreenContext* CurrentGreen(const World& world, Thread* thread) noexcept;
// Its streams end with it, and their handles say so; work that is queued still runs.
void EndGreen(World& world, GreenContext* green) noexcept;
// Everything that runs in one green context, or in a whole context with its green ones (green null).
bool IsStreamOf(const Stream* stream, const Context* context, const GreenContext* green) noexcept;

}  // namespace cuaudit::sim
