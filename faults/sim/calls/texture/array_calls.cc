// SPDX-License-Identifier: MIT
// Arrays, mipmapped arrays, and the texture and surface objects on them.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/array.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/physical.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {

namespace {

CUresult Create(Call& call, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  Array shape;
  if (out == nullptr || !ShapeArray(descriptor, &shape)) return CUDA_ERROR_INVALID_VALUE;
  Array* const array = call.world.Make<Array>(call.context);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  (void)ShapeArray(descriptor, array);
  array->range = TakeForArray(call.world, call.context, descriptor, array->Size());
  if (array->range == nullptr) {
    call.world.Destroy(array);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = ToHandle<CUarray>(array);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::ArrayCreate(Call& call, CUarray* out, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Create(call, out, {descriptor->Width, descriptor->Height, 0, descriptor->Format, descriptor->NumChannels, 0});
}

CUresult api::Array3DCreate(Call& call, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return descriptor == nullptr ? CUDA_ERROR_INVALID_VALUE : Create(call, out, *descriptor);
}

CUresult api::ArrayDestroy(Call& call, CUarray handle) {
  Array* array = call.Follow<Array>(handle);
  if (array == nullptr) return call.Gone(handle);
  const CUresult result = Borrow(call, array->owner);
  if (result != CUDA_SUCCESS) return result;
  DrainContext(call, array->owner);
  array = call.Follow<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (array->parent != nullptr) return CUDA_SUCCESS;  // a level stays its mipmapped array's: mipmapped.level_destroyed_twice
  ObserveRelease(call.world, array->range);
  FreeArray(call.world, array);
  return CUDA_SUCCESS;
}

CUresult api::ArrayGetDescriptor(Call& call, CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array* const array = call.Follow<Array>(handle);
  if (array == nullptr) return call.Gone(handle);
  *out = {array->descriptor.Width, array->descriptor.Height, array->descriptor.Format, array->descriptor.NumChannels};
  return CUDA_SUCCESS;
}

CUresult api::Array3DGetDescriptor(Call& call, CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array* const array = call.Follow<Array>(handle);
  if (array == nullptr) return call.Gone(handle);
  *out = array->descriptor;
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayCreate(Call& call, CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned int levels) {
  Levels shape;
  if (out == nullptr || descriptor == nullptr || !ShapeLevels(*descriptor, levels, &shape)) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = TakeForArray(call.world, call.context, *descriptor, shape.bytes);
  const MipmappedArray* const array = range == nullptr ? nullptr : MakeLevels(call.world, call.context, *descriptor, shape, range);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmipmappedArray>(array);
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayDestroy(Call& call, CUmipmappedArray handle) {
  MipmappedArray* array = FindLevels(call, handle);
  if (array == nullptr) return RefuseLevels(call, handle);
  DrainContext(call, array->owner);
  array = call.world.Find<MipmappedArray>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ObserveRelease(call.world, array->range);
  FreeMipmappedArray(call.world, array);
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayGetLevel(Call& call, CUarray* out, CUmipmappedArray handle, unsigned int level) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const MipmappedArray* const array = FindLevels(call, handle);
  if (array == nullptr) return RefuseLevels(call, handle);
  if (level >= array->levels) return CUDA_ERROR_INVALID_VALUE;
  *out = ToHandle<CUarray>(array->level[level]);
  return CUDA_SUCCESS;
}

namespace {

constexpr std::uint64_t kTileBytes = 65536;

struct Extent {
  unsigned width, height, depth;
};

// A tile of 64 KiB.
Extent TileOf(const Array& shape) {
  const bool volume = shape.descriptor.Depth != 0 && (shape.descriptor.Flags & CUDA_ARRAY3D_LAYERED) == 0;
  switch (shape.element) {
    case 1:
      return volume ? Extent{64, 32, 32} : Extent{256, 256, 1};
    case 2:
      return volume ? Extent{32, 32, 32} : Extent{256, 128, 1};
    case 4:
      return volume ? Extent{32, 32, 16} : Extent{128, 128, 1};
    case 8:
      return volume ? Extent{32, 16, 16} : Extent{128, 64, 1};
    default:
      return volume ? Extent{16, 16, 16} : Extent{64, 64, 1};
  }
}

CUresult Requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::uint64_t bytes) {
  if ((descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->alignment = kTileBytes;
  out->size = (bytes + kTileBytes - 1) / kTileBytes * kTileBytes;
  return CUDA_SUCCESS;
}

// The part of an array that one entry of a list speaks of; false: it has no such part.
bool Describe(const World& world, const CUarrayMapInfo& info, Binding* binding) {
  const bool mipmapped = info.resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  if (!mipmapped && info.resourceType != CU_RESOURCE_TYPE_ARRAY) return false;
  const MipmappedArray* const levels = mipmapped ? world.Find<MipmappedArray>(info.resource.mipmap) : nullptr;
  const Array* array = mipmapped ? nullptr : world.Find<Array>(info.resource.array);
  if (levels == nullptr && (array == nullptr || array->parent != nullptr)) return false;
  const CUDA_ARRAY3D_DESCRIPTOR& descriptor = mipmapped ? levels->descriptor : array->descriptor;
  if (!IsDeferred(descriptor)) return false;
  binding->range = mipmapped ? levels->range : array->range;
  binding->kind = static_cast<std::uint32_t>(info.subresourceType);
  if (info.subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
    const auto& tail = info.subresource.miptail;
    const std::uint64_t part[8] = {tail.layer, tail.offset, tail.size};
    std::memcpy(binding->part, part, sizeof(part));
    return tail.size != 0;
  }
  if (info.subresourceType != CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) return false;
  const auto& level = info.subresource.sparseLevel;
  if (level.level >= (mipmapped ? levels->levels : 1)) return false;
  if (mipmapped) array = levels->level[level.level];
  const CUDA_ARRAY3D_DESCRIPTOR& size = array->descriptor;
  const auto inside = [](std::uint64_t offset, std::uint64_t extent, std::uint64_t whole) {
    return extent != 0 && offset + extent <= (whole == 0 ? 1 : whole);
  };
  const bool layered = (size.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (!inside(level.offsetX, level.extentWidth, size.Width) || !inside(level.offsetY, level.extentHeight, size.Height)) return false;
  if (!inside(level.offsetZ, level.extentDepth, layered ? 1 : size.Depth)) return false;
  const std::uint64_t part[8] = {level.level,   level.layer,       level.offsetX,      level.offsetY,
                                 level.offsetZ, level.extentWidth, level.extentHeight, level.extentDepth};
  std::memcpy(binding->part, part, sizeof(part));
  return true;
}

Binding* FindBinding(World& world, const Binding& wanted) {
  for (Binding* const binding : world.bindings) {
    if (binding->range == wanted.range && binding->kind == wanted.kind &&
        std::memcmp(binding->part, wanted.part, sizeof(wanted.part)) == 0) {
      return binding;
    }
  }
  return nullptr;
}

void Unbind(World& world, Binding* binding) {
  --binding->physical->mappings;
  DropPhysical(world, binding->physical);
  world.bindings.EraseValue(binding);
  world.arena.Delete(binding);
}

}  // namespace

CUresult api::ArrayGetMemoryRequirements(Call& call, CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray handle, CUdevice device) {
  const Array* const array = call.Follow<Array>(handle);
  if (array == nullptr) return call.world.DiedWithContext(handle) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  return Requirements(out, array->descriptor, array->Size());
}

CUresult api::MipmappedArrayGetMemoryRequirements(Call& call, CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray handle,
                                                  CUdevice device) {
  const MipmappedArray* const array = call.Read<MipmappedArray>(handle);
  if (array == nullptr) return call.world.Destroyed(handle) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= call.world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  return Requirements(out, array->descriptor, array->range->size);
}

CUresult api::ArrayGetSparseProperties(Call& call, CUDA_ARRAY_SPARSE_PROPERTIES* out, CUarray handle) {
  const Array* const array = call.Follow<Array>(handle);
  if (array == nullptr) return call.Gone(handle);
  if (out == nullptr || (array->descriptor.Flags & CUDA_ARRAY3D_SPARSE) == 0) return CUDA_ERROR_INVALID_VALUE;
  const Extent tile = TileOf(*array);
  *out = {};
  out->tileExtent = {tile.width, tile.height, tile.depth};
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayGetSparseProperties(Call& call, CUDA_ARRAY_SPARSE_PROPERTIES* out, CUmipmappedArray handle) {
  const MipmappedArray* const array = call.Read<MipmappedArray>(handle);
  if (array == nullptr) return call.world.Destroyed(handle) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  if (out == nullptr || (array->descriptor.Flags & CUDA_ARRAY3D_SPARSE) == 0) return CUDA_ERROR_INVALID_VALUE;
  const Extent tile = TileOf(*array->level[0]);
  *out = {};
  out->tileExtent = {tile.width, tile.height, tile.depth};
  // The tail begins where a level is smaller than a tile.
  while (out->miptailFirstLevel < array->levels) {
    const CUDA_ARRAY3D_DESCRIPTOR& size = array->level[out->miptailFirstLevel]->descriptor;
    if (size.Width < tile.width || (size.Height != 0 && size.Height < tile.height) || (tile.depth > 1 && size.Depth < tile.depth)) break;
    ++out->miptailFirstLevel;
  }
  std::uint64_t bytes = 0;
  for (unsigned i = out->miptailFirstLevel; i < array->levels; ++i) bytes += array->level[i]->Size();
  out->miptailSize = (bytes + kTileBytes - 1) / kTileBytes * kTileBytes;
  return CUDA_SUCCESS;
}

// No planar format can be created.
CUresult api::ArrayGetPlane(Call& call, CUarray* out, CUarray handle, unsigned int) {
  if (call.Follow<Array>(handle) == nullptr) return call.Gone(handle);
  (void)out;
  return CUDA_ERROR_INVALID_VALUE;
}

// Bindings change when the call is made, after what the stream still does. The physical memory is held, its bytes stay apart.
CUresult api::MemMapArrayAsync(Call& call, CUarrayMapInfo* list, unsigned int count, CUstream handle) {
  World& world = call.world;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (list == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Drain(call, stream);
  for (unsigned i = 0; i < count; ++i) {
    const CUarrayMapInfo& info = list[i];
    Binding wanted{};
    if (info.flags != 0 || info.deviceBitMask == 0 || !Describe(world, info, &wanted)) return CUDA_ERROR_INVALID_VALUE;
    Binding* const known = FindBinding(world, wanted);
    if (info.memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) {
      if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
      Unbind(world, known);
    } else {
      Physical* const physical = world.Find<Physical>(info.memHandle.memHandle);
      if (info.memOperationType != CU_MEM_OPERATION_TYPE_MAP || info.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC || physical == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
      if ((physical->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0) return CUDA_ERROR_INVALID_VALUE;
      if (info.offset % kTileBytes != 0 || info.offset >= physical->size) return CUDA_ERROR_INVALID_VALUE;
      Binding* const binding = world.arena.New<Binding>();
      if (binding == nullptr || !world.bindings.Push(world.arena, binding)) return CUDA_ERROR_OUT_OF_MEMORY;
      if (known != nullptr) Unbind(world, known);
      *binding = wanted;
      binding->physical = physical;
      ++physical->mappings;
    }
    wanted.range->accessible = false;
    for (const Binding* const binding : world.bindings) wanted.range->accessible |= binding->range == wanted.range;
  }
  return CUDA_SUCCESS;
}

// Texture and surface objects.

namespace {

// CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT and TEXTURE_PITCH_ALIGNMENT; sizes are not compared with the allocation's.
constexpr std::uint64_t kAlignment = 512;
constexpr std::uint64_t kTexturePitch = 32;

CUresult CheckMemory(const World& world, CUdeviceptr address) {
  return address % kAlignment != 0 || world.ranges.Find(address) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

bool IsKnown(const CUDA_TEXTURE_DESC& texture) {
  for (const CUaddress_mode mode : texture.addressMode) {
    if (mode > CU_TR_ADDRESS_MODE_BORDER) return false;
  }
  return texture.filterMode <= CU_TR_FILTER_MODE_LINEAR && texture.mipmapFilterMode <= CU_TR_FILTER_MODE_LINEAR;
}

// An array can be bound only in its own context.
CUresult CheckArray(const Call& call, CUarray handle) {
  const Array* const array = call.world.Find<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return array->owner == call.context ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult CheckResource(const Call& call, const CUDA_RESOURCE_DESC* resource) {
  const World& world = call.world;
  if (resource == nullptr || resource->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return CheckArray(call, resource->res.array.hArray);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return world.Find<MipmappedArray>(resource->res.mipmap.hMipmappedArray) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
      return CheckMemory(world, resource->res.linear.devPtr);
    case CU_RESOURCE_TYPE_PITCH2D:
      return resource->res.pitch2D.pitchInBytes % kTexturePitch != 0 ? CUDA_ERROR_INVALID_VALUE
                                                                     : CheckMemory(world, resource->res.pitch2D.devPtr);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

template <typename T>
CUresult End(World& world, std::uint64_t handle) {
  if (handle == 0) return CUDA_SUCCESS;
  T* const object = world.Find<T>(handle);
  if (object == nullptr) return world.handles.IsStale(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;  // the ledger tells of it
  world.Destroy(object);
  return CUDA_SUCCESS;
}

// A texture or a surface is known in its own context only.
template <typename T, typename Part>
CUresult Read(const Call& call, std::uint64_t handle, Part T::*part, Part* out) {
  const T* const object = call.world.Find<T>(handle);
  if (object == nullptr || out == nullptr || object->owner != call.context) return CUDA_ERROR_INVALID_VALUE;
  *out = object->*part;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::TexObjectCreate(Call& call, CUtexObject* out, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                              const CUDA_RESOURCE_VIEW_DESC* view) {
  if (out == nullptr || texture == nullptr || !IsKnown(*texture)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckResource(call, resource);
  if (result != CUDA_SUCCESS) return result;
  Texture* const object = call.world.Make<Texture>(call.context);
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->resource = *resource;
  object->texture = *texture;
  if (view != nullptr) object->view = *view;
  object->has_view = view != nullptr;
  *out = ToHandle<CUtexObject>(object);
  return CUDA_SUCCESS;
}

CUresult api::TexObjectDestroy(Call& call, CUtexObject handle) { return End<Texture>(call.world, handle); }

CUresult api::TexObjectGetResourceDesc(Call& call, CUDA_RESOURCE_DESC* out, CUtexObject handle) {
  return Read(call, handle, &Texture::resource, out);
}

CUresult api::TexObjectGetTextureDesc(Call& call, CUDA_TEXTURE_DESC* out, CUtexObject handle) {
  return Read(call, handle, &Texture::texture, out);
}

CUresult api::TexObjectGetResourceViewDesc(Call& call, CUDA_RESOURCE_VIEW_DESC* out, CUtexObject handle) {
  return Read(call, handle, &Texture::view, out);
}

CUresult api::SurfObjectCreate(Call& call, CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckArray(call, resource->res.array.hArray);  // drivers do not ask for CUDA_ARRAY3D_SURFACE_LDST
  if (result != CUDA_SUCCESS) return result;
  Surface* const object = call.world.Make<Surface>(call.context);
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->resource = *resource;
  *out = ToHandle<CUsurfObject>(object);
  return CUDA_SUCCESS;
}

CUresult api::SurfObjectDestroy(Call& call, CUsurfObject handle) { return End<Surface>(call.world, handle); }

CUresult api::SurfObjectGetResourceDesc(Call& call, CUDA_RESOURCE_DESC* out, CUsurfObject handle) {
  return Read(call, handle, &Surface::resource, out);
}

}  // namespace cuaudit::sim
