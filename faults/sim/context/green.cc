// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/green.h"

#include "faults/sim/order/marker.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {

CUdevResource WholeDevice(const World& world, CUdevice device) noexcept {
  const Profile& profile = *world.profile;
  CUdevResource all{};
  all.type = CU_DEV_RESOURCE_TYPE_SM;
  SetGroup(&all, static_cast<unsigned>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)), profile.least_group,
           profile.group_unit);
  Mark(&all, ResourceOrigin::Whole, device);
  return all;
}

void SetGroup(CUdevResource* resource, unsigned count, [[maybe_unused]] unsigned least, [[maybe_unused]] unsigned unit) noexcept {
  resource->sm = {};
  resource->sm.smCount = count;
#if CUDA_VERSION >= 13000
  resource->sm.minSmPartitionSize = least;
  resource->sm.smCoscheduledAlignment = unit;
#endif
}

void Mark(CUdevResource* resource, ResourceOrigin origin, CUdevice device, std::uint32_t split, std::uint32_t first) noexcept {
  const std::uint32_t words[4] = {static_cast<std::uint32_t>(origin), static_cast<std::uint32_t>(device), split, first};
  std::memcpy(resource->_internal_padding, words, sizeof(words));
}

bool BelongTogether(const CUdevResource& one, const CUdevResource& other) noexcept {
  std::uint32_t a[4];
  std::uint32_t b[4];
  std::memcpy(a, one._internal_padding, sizeof(a));
  std::memcpy(b, other._internal_padding, sizeof(b));
  return a[1] == b[1] && a[2] != 0 && a[2] == b[2] && a[3] != b[3];
}

bool OriginOf(const CUdevResource& resource, ResourceOrigin* origin, CUdevice* device) noexcept {
  std::uint32_t words[2];
  std::memcpy(words, resource._internal_padding, sizeof(words));
  if (words[0] < static_cast<std::uint32_t>(ResourceOrigin::Whole) || words[0] > static_cast<std::uint32_t>(ResourceOrigin::Remainder))
    return false;
  *origin = static_cast<ResourceOrigin>(words[0]);
  *device = static_cast<CUdevice>(words[1]);
  return true;
}

void EndGreen(World& world, GreenContext* green) noexcept {
  world.handles.ending = Ending::Green;
  for (Object* at = green->primary->children.first; at != nullptr;) {
    Object* const object = at;
    at = at->next;
    if (object->tag != Tag::Stream) continue;
    Stream* const stream = static_cast<Stream*>(object);
    if (stream->green == green) FreeStream(world, stream);
  }
  world.handles.ending = Ending::Nothing;
  DropMarker(world, green->gate);
  world.Destroy(green->view);
  world.Destroy(green);
}

}  // namespace cuaudit::sim
