// SPDX-License-Identifier: MIT
// Arrays and mipmapped arrays, and the texture and surface objects over them.
#include <initializer_list>

#include "faults/cudart/descriptions.h"
#include "faults/cudart/process.h"

namespace cuaudit::cudart {

cudaError_t MallocArray(DriverRef driver, cudaArray_t* array, const struct cudaChannelFormatDesc* desc, size_t width, size_t height,
                        unsigned int flags) noexcept {
  return Malloc3DArray(driver, array, desc, cudaExtent{width, height, 0}, flags);
}

cudaError_t Malloc3DArray(DriverRef driver, cudaArray_t* array, const struct cudaChannelFormatDesc* desc, struct cudaExtent extent,
                          unsigned int flags) noexcept {
  if (array == nullptr || desc == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR plan;
  if (const cudaError_t error = PlanArray(*desc, extent, flags, &plan)) return error;
  CUarray made = nullptr;
  const CUresult result = driver.Array3DCreate(&made, &plan);
  if (result == CUDA_SUCCESS) *array = reinterpret_cast<cudaArray_t>(made);
  return From(result);
}

cudaError_t FreeArray(DriverRef driver, cudaArray_t array) noexcept {
  return array == nullptr ? cudaSuccess : From(driver.ArrayDestroy(Array(array)));
}

cudaError_t MallocMipmappedArray(DriverRef driver, cudaMipmappedArray_t* mipmappedArray, const struct cudaChannelFormatDesc* desc,
                                 struct cudaExtent extent, unsigned int numLevels, unsigned int flags) noexcept {
  if (mipmappedArray == nullptr || desc == nullptr) return cudaErrorInvalidValue;
  CUDA_ARRAY3D_DESCRIPTOR plan;
  if (const cudaError_t error = PlanArray(*desc, extent, flags, &plan)) return error;
  CUmipmappedArray made = nullptr;
  const CUresult result = driver.MipmappedArrayCreate(&made, &plan, numLevels == 0 ? 1 : numLevels);
  if (result == CUDA_SUCCESS) *mipmappedArray = reinterpret_cast<cudaMipmappedArray_t>(made);
  return From(result);
}

cudaError_t FreeMipmappedArray(DriverRef driver, cudaMipmappedArray_t mipmappedArray) noexcept {
  return mipmappedArray == nullptr ? cudaSuccess : From(driver.MipmappedArrayDestroy(Mipmap(mipmappedArray)));
}

cudaError_t GetMipmappedArrayLevel(DriverRef driver, cudaArray_t* levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                   unsigned int level) noexcept {
  if (levelArray == nullptr) return cudaErrorInvalidValue;
  CUarray found = nullptr;
  const CUresult result = driver.MipmappedArrayGetLevel(&found, Mipmap(mipmappedArray), level);
  if (result == CUDA_SUCCESS) *levelArray = reinterpret_cast<cudaArray_t>(found);
  return From(result);
}

cudaError_t ArrayGetInfo(DriverRef driver, struct cudaChannelFormatDesc* desc, struct cudaExtent* extent, unsigned int* flags,
                         cudaArray_t array) noexcept {
  CUDA_ARRAY3D_DESCRIPTOR found{};
  const CUresult result = driver.Array3DGetDescriptor(&found, Array(array));
  if (result != CUDA_SUCCESS) return From(result);
  if (desc != nullptr) *desc = DescriptionOf({found.Format, found.NumChannels});
  if (extent != nullptr) *extent = {found.Width, found.Height, found.Depth};
  if (flags != nullptr) *flags = found.Flags;
  return cudaSuccess;
}

cudaError_t GetChannelDesc(DriverRef driver, struct cudaChannelFormatDesc* desc, cudaArray_const_t array) noexcept {
  if (desc == nullptr) return cudaErrorInvalidValue;
  return ArrayGetInfo(driver, desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t ArrayGetPlane(DriverRef driver, cudaArray_t* pPlaneArray, cudaArray_t hArray, unsigned int planeIdx) noexcept {
  if (pPlaneArray == nullptr) return cudaErrorInvalidValue;
  CUarray found = nullptr;
  const CUresult result = driver.ArrayGetPlane(&found, Array(hArray), planeIdx);
  if (result == CUDA_SUCCESS) *pPlaneArray = reinterpret_cast<cudaArray_t>(found);
  return From(result);
}

cudaError_t ArrayGetMemoryRequirements(DriverRef driver, struct cudaArrayMemoryRequirements* memoryRequirements, cudaArray_t array,
                                       int device) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.ArrayGetMemoryRequirements(As(memoryRequirements), Array(array), DeviceAt(device)));
}

cudaError_t MipmappedArrayGetMemoryRequirements(DriverRef driver, struct cudaArrayMemoryRequirements* memoryRequirements,
                                                cudaMipmappedArray_t mipmap, int device) noexcept {
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  return From(driver.MipmappedArrayGetMemoryRequirements(As(memoryRequirements), Mipmap(mipmap), DeviceAt(device)));
}

cudaError_t ArrayGetSparseProperties(DriverRef driver, struct cudaArraySparseProperties* sparseProperties, cudaArray_t array) noexcept {
  return From(driver.ArrayGetSparseProperties(As(sparseProperties), Array(array)));
}

cudaError_t MipmappedArrayGetSparseProperties(DriverRef driver, struct cudaArraySparseProperties* sparseProperties,
                                              cudaMipmappedArray_t mipmap) noexcept {
  return From(driver.MipmappedArrayGetSparseProperties(As(sparseProperties), Mipmap(mipmap)));
}

cudaError_t DeviceGetTexture1DLinearMaxWidth(DriverRef driver, size_t* maxWidthInElements, const struct cudaChannelFormatDesc* fmtDesc,
                                             int device) noexcept {
  if (fmtDesc == nullptr) return cudaErrorInvalidValue;
  if (!IsDevice(device)) return cudaErrorInvalidDevice;
  Format format{};
  if (const cudaError_t error = FormatOf(*fmtDesc, &format)) return error;
  return From(driver.DeviceGetTexture1DLinearMaxWidth(maxWidthInElements, format.format, format.channels, DeviceAt(device)));
}

cudaError_t CreateTextureObject(DriverRef driver, cudaTextureObject_t* pTexObject, const struct cudaResourceDesc* pResDesc,
                                const struct cudaTextureDesc* pTexDesc, const struct cudaResourceViewDesc* pResViewDesc) noexcept {
  if (pTexObject == nullptr || pResDesc == nullptr) return cudaErrorInvalidValue;
  if (pTexDesc == nullptr) return cudaErrorInvalidResourceHandle;
  CUDA_RESOURCE_DESC resource;
  if (const cudaError_t error = PlanResource(*pResDesc, &resource)) return error;
  const CUDA_TEXTURE_DESC texture = PlanTexture(*pTexDesc);
  return From(driver.TexObjectCreate(pTexObject, &resource, &texture, As(pResViewDesc)));
}

cudaError_t DestroyTextureObject(DriverRef driver, cudaTextureObject_t texObject) noexcept {
  return texObject == 0 ? cudaSuccess : From(driver.TexObjectDestroy(texObject));
}

cudaError_t GetTextureObjectResourceDesc(DriverRef driver, struct cudaResourceDesc* pResDesc, cudaTextureObject_t texObject) noexcept {
  if (pResDesc == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC found{};
  const CUresult result = driver.TexObjectGetResourceDesc(&found, texObject);
  if (result == CUDA_SUCCESS) *pResDesc = ResourceOf(found);
  return From(result);
}

cudaError_t GetTextureObjectTextureDesc(DriverRef driver, struct cudaTextureDesc* pTexDesc, cudaTextureObject_t texObject) noexcept {
  if (pTexDesc == nullptr) return cudaErrorInvalidValue;
  CUDA_TEXTURE_DESC found{};
  const CUresult result = driver.TexObjectGetTextureDesc(&found, texObject);
  if (result == CUDA_SUCCESS) *pTexDesc = TextureOf(found);
  return From(result);
}

cudaError_t GetTextureObjectResourceViewDesc(DriverRef driver, struct cudaResourceViewDesc* pResViewDesc,
                                             cudaTextureObject_t texObject) noexcept {
  return From(driver.TexObjectGetResourceViewDesc(As(pResViewDesc), texObject));
}

cudaError_t CreateSurfaceObject(DriverRef driver, cudaSurfaceObject_t* pSurfObject, const struct cudaResourceDesc* pResDesc) noexcept {
  if (pSurfObject == nullptr || pResDesc == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC resource;
  if (const cudaError_t error = PlanResource(*pResDesc, &resource)) return error;
  return From(driver.SurfObjectCreate(pSurfObject, &resource));
}

cudaError_t DestroySurfaceObject(DriverRef driver, cudaSurfaceObject_t surfObject) noexcept {
  return surfObject == 0 ? cudaSuccess : From(driver.SurfObjectDestroy(surfObject));
}

cudaError_t GetSurfaceObjectResourceDesc(DriverRef driver, struct cudaResourceDesc* pResDesc, cudaSurfaceObject_t surfObject) noexcept {
  if (pResDesc == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC found{};
  const CUresult result = driver.SurfObjectGetResourceDesc(&found, surfObject);
  if (result == CUDA_SUCCESS) *pResDesc = ResourceOf(found);
  return From(result);
}

namespace {

// Tag for a call without a stream, which uses the synchronous entry point.
struct Now {};

CUresult Copy(DriverRef driver, const CUDA_MEMCPY2D& plan, Now) noexcept { return driver.Memcpy2DUnaligned(&plan); }
CUresult Copy(DriverRef driver, const CUDA_MEMCPY2D& plan, cudaStream_t stream) noexcept { return driver.Memcpy2DAsync(&plan, stream); }

template <typename When>
cudaError_t Rows(DriverRef driver, const Side& to, const Side& from, size_t width, size_t height, When when) noexcept {
  CUDA_MEMCPY2D plan;
  for (const Side* const side : {&to, &from}) {
    if (side->type == CU_MEMORYTYPE_ARRAY && side->array == nullptr) return cudaErrorInvalidResourceHandle;
  }
  if (const cudaError_t error = Plan2D(to, from, width, height, &plan)) return error;
  return width == 0 || height == 0 ? cudaSuccess : From(Copy(driver, plan, when));
}

cudaError_t RowBytes(DriverRef driver, cudaArray_const_t array, size_t* bytes) noexcept {
  cudaMemcpy3DParms probe{};
  probe.srcArray = const_cast<cudaArray_t>(array);
  probe.dstArray = const_cast<cudaArray_t>(array);
  probe.kind = cudaMemcpyDeviceToDevice;
  probe.extent = {1, 1, 1};
  CUDA_MEMCPY3D plan;
  if (const cudaError_t error = Plan3D(driver, probe, &plan)) return error;
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  const CUresult result = driver.Array3DGetDescriptor(&descriptor, Array(array));
  *bytes = descriptor.Width * plan.WidthInBytes;
  return From(result);
}

// Splits a linear range that starts within a row and wraps: the rest of the first row, whole rows, the start of the last row.
template <typename When>
cudaError_t Linear(DriverRef driver, cudaArray_const_t array, size_t x, size_t y, const void* pointer, size_t count, CUmemorytype type,
                   bool to_array, When when) noexcept {
  size_t row = 0;
  if (const cudaError_t error = RowBytes(driver, array, &row)) return error;
  if (row == 0 || x >= row) return cudaErrorInvalidValue;
  const char* at = static_cast<const char*>(pointer);
  while (count != 0) {
    const bool part = x != 0 || count < row;
    const size_t width = part ? (count < row - x ? count : row - x) : row;
    const size_t height = part ? 1 : count / row;
    const Side there = ArraySide(array, x, y);
    const Side here = PointerSide(type, at, width);
    const cudaError_t error = to_array ? Rows(driver, there, here, width, height, when) : Rows(driver, here, there, width, height, when);
    if (error != cudaSuccess) return error;
    at += width * height;
    count -= width * height;
    y += height;
    x = 0;
  }
  return cudaSuccess;
}

// Copies one linear range to another, row by row of either side.
cudaError_t BetweenArrays(DriverRef driver, cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x, size_t from_y,
                          size_t count) noexcept {
  size_t to_row = 0;
  size_t from_row = 0;
  if (const cudaError_t error = RowBytes(driver, to, &to_row)) return error;
  if (const cudaError_t error = RowBytes(driver, from, &from_row)) return error;
  if (to_x >= to_row || from_x >= from_row) return cudaErrorInvalidValue;
  while (count != 0) {
    size_t width = count < to_row - to_x ? count : to_row - to_x;
    if (width > from_row - from_x) width = from_row - from_x;
    const cudaError_t error = Rows(driver, ArraySide(to, to_x, to_y), ArraySide(from, from_x, from_y), width, 1, Now());
    if (error != cudaSuccess) return error;
    count -= width;
    to_x += width;
    from_x += width;
    to_y += to_x == to_row ? 1 : 0;
    from_y += from_x == from_row ? 1 : 0;
    to_x %= to_row;
    from_x %= from_row;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t Memcpy2DToArray(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch, size_t width,
                            size_t height, enum cudaMemcpyKind kind) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, ArraySide(dst, wOffset, hOffset), PointerSide(SourceType(kind), src, spitch), width, height, Now());
}

cudaError_t Memcpy2DToArrayAsync(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t spitch,
                                 size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, ArraySide(dst, wOffset, hOffset), PointerSide(SourceType(kind), src, spitch), width, height, stream);
}

cudaError_t Memcpy2DFromArray(DriverRef driver, void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                              size_t width, size_t height, enum cudaMemcpyKind kind) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, PointerSide(DestinationType(kind), dst, dpitch), ArraySide(src, wOffset, hOffset), width, height, Now());
}

cudaError_t Memcpy2DFromArrayAsync(DriverRef driver, void* dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                   size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, PointerSide(DestinationType(kind), dst, dpitch), ArraySide(src, wOffset, hOffset), width, height, stream);
}

cudaError_t Memcpy2DArrayToArray(DriverRef driver, cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                                 size_t wOffsetSrc, size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind) noexcept {
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  return Rows(driver, ArraySide(dst, wOffsetDst, hOffsetDst), ArraySide(src, wOffsetSrc, hOffsetSrc), width, height, Now());
}

cudaError_t MemcpyArrayToArray(DriverRef driver, cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src,
                               size_t wOffsetSrc, size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind) noexcept {
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  return BetweenArrays(driver, dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count);
}

cudaError_t MemcpyToArray(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                          enum cudaMemcpyKind kind) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, dst, wOffset, hOffset, src, count, SourceType(kind), true, Now());
}

cudaError_t MemcpyToArrayAsync(DriverRef driver, cudaArray_t dst, size_t wOffset, size_t hOffset, const void* src, size_t count,
                               enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!IntoDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, dst, wOffset, hOffset, src, count, SourceType(kind), true, stream);
}

cudaError_t MemcpyFromArray(DriverRef driver, void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                            enum cudaMemcpyKind kind) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, src, wOffset, hOffset, dst, count, DestinationType(kind), false, Now());
}

cudaError_t MemcpyFromArrayAsync(DriverRef driver, void* dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                                 enum cudaMemcpyKind kind, cudaStream_t stream) noexcept {
  if (!OutOfDevice(kind)) return cudaErrorInvalidMemcpyDirection;
  return Linear(driver, src, wOffset, hOffset, dst, count, DestinationType(kind), false, stream);
}

}  // namespace cuaudit::cudart
