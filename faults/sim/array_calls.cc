// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t kMaxWidth = 131072;
constexpr std::size_t kMaxHeight = 65536;
constexpr std::size_t kMaxDepth = 16384;

std::uint32_t ElementBytes(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (static_cast<int>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return channels * 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return channels * 4;
    default:
      return 0;  // packed and compressed formats are not modelled
  }
}

bool Shape(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array* array) {
  const std::uint32_t element = ElementBytes(descriptor.Format, descriptor.NumChannels);
  const bool fits = descriptor.Width <= kMaxWidth && descriptor.Height <= kMaxHeight && descriptor.Depth <= kMaxDepth;
  if (element == 0 || descriptor.Width == 0 || !fits) return false;
  const bool layered = (descriptor.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (descriptor.Height == 0 && descriptor.Depth != 0 && !layered) return false;
  if ((descriptor.Flags & CUDA_ARRAY3D_CUBEMAP) != 0 && (descriptor.Depth % 6 != 0 || descriptor.Width != descriptor.Height)) return false;
  array->descriptor = descriptor;
  array->element = element;
  array->pitch = descriptor.Width * element;
  array->rows = descriptor.Height == 0 ? 1 : descriptor.Height;
  array->slices = descriptor.Depth == 0 ? 1 : descriptor.Depth;
  return true;
}

CUresult Create(Call& call, CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  Array shape;
  if (out == nullptr || !Shape(descriptor, &shape)) return CUDA_ERROR_INVALID_VALUE;
  Array* const array = call.world.Make<Array>(call.context);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Shape(descriptor, array);
  array->range = TakeDevice(call.world, call.context, array->Size(), Kind::None);
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
  Array* array = call.world.Find<Array>(handle);
  if (array == nullptr || array->parent != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, array->owner);
  if (result != CUDA_SUCCESS) return result;
  DrainContext(call, array->owner);
  array = call.world.Find<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FreeArray(call.world, array);
  return CUDA_SUCCESS;
}

CUresult api::ArrayGetDescriptor(Call& call, CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array* const array = call.world.Find<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = {array->descriptor.Width, array->descriptor.Height, array->descriptor.Format, array->descriptor.NumChannels};
  return CUDA_SUCCESS;
}

CUresult api::Array3DGetDescriptor(Call& call, CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Array* const array = call.world.Find<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = array->descriptor;
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayCreate(Call& call, CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned int levels) {
  World& world = call.world;
  Array shape;
  if (out == nullptr || descriptor == nullptr || levels == 0 || !Shape(*descriptor, &shape)) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t bytes = 0;
  CUDA_ARRAY3D_DESCRIPTOR sizes[MipmappedArray::kMaxLevels];
  unsigned made = 0;
  for (CUDA_ARRAY3D_DESCRIPTOR size = *descriptor; made < levels && made < MipmappedArray::kMaxLevels;) {
    Shape(size, &shape);
    sizes[made++] = size;
    bytes += (shape.Size() + 511) / 512 * 512;
    if (size.Width <= 1 && size.Height <= 1 && size.Depth <= 1) break;
    size.Width = size.Width > 1 ? size.Width / 2 : size.Width;
    size.Height = size.Height > 1 ? size.Height / 2 : size.Height;
    if ((size.Flags & CUDA_ARRAY3D_LAYERED) == 0) size.Depth = size.Depth > 1 ? size.Depth / 2 : size.Depth;
  }
  MipmappedArray* const array = world.Make<MipmappedArray>(call.context);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  array->descriptor = *descriptor;
  array->levels = made;
  array->range = TakeDevice(world, call.context, bytes, Kind::None);
  if (array->range == nullptr) {
    world.Destroy(array);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::uint64_t offset = 0;
  for (unsigned i = 0; i < made; ++i) {
    Array* const level = world.Make<Array>(call.context, false);
    if (level == nullptr) {
      FreeMipmappedArray(world, array);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Shape(sizes[i], level);
    level->parent = array;
    level->range = array->range;
    level->offset = offset;
    offset += (level->Size() + 511) / 512 * 512;
    array->level[i] = level;
  }
  *out = ToHandle<CUmipmappedArray>(array);
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayDestroy(Call& call, CUmipmappedArray handle) {
  MipmappedArray* array = call.world.Find<MipmappedArray>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  DrainContext(call, array->owner);
  array = call.world.Find<MipmappedArray>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  FreeMipmappedArray(call.world, array);
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayGetLevel(Call& call, CUarray* out, CUmipmappedArray handle, unsigned int level) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const MipmappedArray* const array = call.world.Find<MipmappedArray>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= array->levels) return CUDA_ERROR_INVALID_VALUE;
  *out = ToHandle<CUarray>(array->level[level]);
  return CUDA_SUCCESS;
}

namespace {

CUresult CheckResource(const World& world, const CUDA_RESOURCE_DESC* resource) {
  if (resource == nullptr || resource->flags != 0) return CUDA_ERROR_INVALID_VALUE;
  switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      return world.Find<Array>(resource->res.array.hArray) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      return world.Find<MipmappedArray>(resource->res.mipmap.hMipmappedArray) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
      return world.ranges.Find(resource->res.linear.devPtr) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      return world.ranges.Find(resource->res.pitch2D.devPtr) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult api::TexObjectCreate(Call& call, CUtexObject* out, const CUDA_RESOURCE_DESC* resource, const CUDA_TEXTURE_DESC* texture,
                              const CUDA_RESOURCE_VIEW_DESC* view) {
  if (out == nullptr || texture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckResource(call.world, resource);
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

CUresult api::TexObjectDestroy(Call& call, CUtexObject handle) {
  Texture* const object = call.world.Find<Texture>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.world.Destroy(object);
  return CUDA_SUCCESS;
}

CUresult api::TexObjectGetResourceDesc(Call& call, CUDA_RESOURCE_DESC* out, CUtexObject handle) {
  const Texture* const object = call.world.Find<Texture>(handle);
  if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->resource;
  return CUDA_SUCCESS;
}

CUresult api::TexObjectGetTextureDesc(Call& call, CUDA_TEXTURE_DESC* out, CUtexObject handle) {
  const Texture* const object = call.world.Find<Texture>(handle);
  if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->texture;
  return CUDA_SUCCESS;
}

CUresult api::TexObjectGetResourceViewDesc(Call& call, CUDA_RESOURCE_VIEW_DESC* out, CUtexObject handle) {
  const Texture* const object = call.world.Find<Texture>(handle);
  if (object == nullptr || out == nullptr || !object->has_view) return CUDA_ERROR_INVALID_VALUE;
  *out = object->view;
  return CUDA_SUCCESS;
}

CUresult api::SurfObjectCreate(Call& call, CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  const Array* const array = call.world.Find<Array>(resource->res.array.hArray);
  if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;  // drivers do not ask for CUDA_ARRAY3D_SURFACE_LDST
  Surface* const object = call.world.Make<Surface>(call.context);
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  object->resource = *resource;
  *out = ToHandle<CUsurfObject>(object);
  return CUDA_SUCCESS;
}

CUresult api::SurfObjectDestroy(Call& call, CUsurfObject handle) {
  Surface* const object = call.world.Find<Surface>(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  call.world.Destroy(object);
  return CUDA_SUCCESS;
}

CUresult api::SurfObjectGetResourceDesc(Call& call, CUDA_RESOURCE_DESC* out, CUsurfObject handle) {
  const Surface* const object = call.world.Find<Surface>(handle);
  if (object == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = object->resource;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
