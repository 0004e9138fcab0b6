// SPDX-License-Identifier: MIT
// green.h: green contexts: a part of a device's multiprocessors, used through the primary context.
//
//   Owns      a green context owns its view (the CUcontext that stands for it), its default stream and a reference to the primary context.
//   Threads   the caller holds the world's lock.
//   Errors    handles of a destroyed green context and of its streams answer CONTEXT_IS_DESTROYED where a device does.
//   Source    CUDA Driver API 13.0, Green Contexts; partition sizes as an H200 (580.159.04) returns them.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// How a device resource was made. The value is kept in the resource's padding, so that the driver recognises its own resources.
enum class ResourceOrigin : std::uint32_t { Whole = 0x5eed0001, Group, Remainder };

struct ResourceDescriptor : Object {
  static constexpr Tag kTag = Tag::ResourceDescriptor;
  CUdevice device = 0;
  CUdevResource resource = {};
};

// Headers before 13.0 have only the count.
void SetGroup(CUdevResource* resource, unsigned count, unsigned least, unsigned unit) noexcept;
// `split` identifies the split call, and `first` the output within it.
void Mark(CUdevResource* resource, ResourceOrigin origin, CUdevice device, std::uint32_t split = 0, std::uint32_t first = 0) noexcept;
// True for two different outputs of one split.
bool BelongTogether(const CUdevResource& one, const CUdevResource& other) noexcept;
// False for a resource that no driver call made.
bool OriginOf(const CUdevResource& resource, ResourceOrigin* origin, CUdevice* device) noexcept;
CUdevResource WholeDevice(const World& world, CUdevice device) noexcept;

// Ends the green context and its streams; their handles then report it. Queued work still runs.
void EndGreen(World& world, GreenContext* green) noexcept;

}  // namespace cuaudit::sim
