// SPDX-License-Identifier: MIT
// Texture and surface objects.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
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
