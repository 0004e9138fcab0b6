// SPDX-License-Identifier: MIT
// Arrays and mipmapped arrays, and the texture and surface objects over them.
#include "faults/cudart/array_plan.h"
#include "faults/cudart/devices.h"
#include "faults/cudart/twins.h"

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
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
  return From(driver.ArrayGetMemoryRequirements(As(memoryRequirements), Array(array), DeviceAt(device)));
}

cudaError_t MipmappedArrayGetMemoryRequirements(DriverRef driver, struct cudaArrayMemoryRequirements* memoryRequirements,
                                                cudaMipmappedArray_t mipmap, int device) noexcept {
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
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
  if (device < 0 || device >= DeviceCount()) return cudaErrorInvalidDevice;
  Format format{};
  if (const cudaError_t error = FormatOf(*fmtDesc, &format)) return error;
  return From(driver.DeviceGetTexture1DLinearMaxWidth(maxWidthInElements, format.format, format.channels, DeviceAt(device)));
}

// objects

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

}  // namespace cuaudit::cudart
