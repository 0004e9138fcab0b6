// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/array.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/order/lifetime.h"
#include "faults/sim/stream/schedule.h"

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
  Array* array = call.world.Find<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, array->owner);
  if (result != CUDA_SUCCESS) return result;
  DrainContext(call, array->owner);
  array = call.world.Find<Array>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (array->parent != nullptr) return CUDA_SUCCESS;  // a level stays its mipmapped array's: mipmapped.level_destroyed_twice
  ObserveRelease(call.world, array->range);
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
  Levels shape;
  if (out == nullptr || descriptor == nullptr || !ShapeLevels(*descriptor, levels, &shape)) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = TakeForArray(call.world, call.context, *descriptor, shape.bytes);
  const MipmappedArray* const array = range == nullptr ? nullptr : MakeLevels(call.world, call.context, *descriptor, shape, range);
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = ToHandle<CUmipmappedArray>(array);
  return CUDA_SUCCESS;
}

CUresult api::MipmappedArrayDestroy(Call& call, CUmipmappedArray handle) {
  MipmappedArray* array = call.world.Find<MipmappedArray>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  DrainContext(call, array->owner);
  array = call.world.Find<MipmappedArray>(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  ObserveRelease(call.world, array->range);
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

}  // namespace cuaudit::sim
