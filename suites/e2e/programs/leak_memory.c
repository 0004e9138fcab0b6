// SPDX-License-Identifier: MIT
// leak_memory.c: the kinds that are memory or address space; arrays and what is bound to them; the kinds that hold code.
#include <stddef.h>
#include <stdint.h>

#include "cuaudit/mark.h"
#include "leak_kind.h"

enum { kBytes = 4096 };

static char registered[kMostCycles][kBytes] __attribute__((aligned(4096)));

int device_memory(const Ground *ground, int cycle, int clean) {
  CUdeviceptr memory;
  (void)ground, (void)cycle;
  DO(cuMemAlloc(&memory, kBytes));
  if (clean) DO(cuMemFree(memory));
  return 0;
}

int managed_memory(const Ground *ground, int cycle, int clean) {
  CUdeviceptr memory;
  (void)ground, (void)cycle;
  DO(cuMemAllocManaged(&memory, kBytes, CU_MEM_ATTACH_GLOBAL));
  if (clean) DO(cuMemFree(memory));
  return 0;
}

int pinned_memory(const Ground *ground, int cycle, int clean) {
  void *memory;
  (void)ground, (void)cycle;
  DO(cuMemHostAlloc(&memory, kBytes, 0));
  if (clean) DO(cuMemFreeHost(memory));
  return 0;
}

int host_registration(const Ground *ground, int cycle, int clean) {
  (void)ground;
  DO(cuMemHostRegister(registered[cycle], kBytes, 0));
  if (clean) DO(cuMemHostUnregister(registered[cycle]));
  return 0;
}

int stream_ordered_memory(const Ground *ground, int cycle, int clean) {
  CUdeviceptr memory;
  (void)cycle;
  DO(cuMemAllocAsync(&memory, kBytes, ground->stream));
  if (clean) DO(cuMemFreeAsync(memory, ground->stream));
  DO(cuStreamSynchronize(ground->stream));
  return 0;
}

int memory_pool(const Ground *ground, int cycle, int clean) {
  const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  CUmemoryPool pool;
  (void)ground, (void)cycle;
  DO(cuMemPoolCreate(&pool, &wanted));
  if (clean) DO(cuMemPoolDestroy(pool));
  return 0;
}

static const CUmemAllocationProp kProperties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};

static CUresult granularity(size_t *bytes) { return cuMemGetAllocationGranularity(bytes, &kProperties, CU_MEM_ALLOC_GRANULARITY_MINIMUM); }

int address_reservation(const Ground *ground, int cycle, int clean) {
  CUdeviceptr range;
  size_t grain;
  (void)ground, (void)cycle;
  DO(granularity(&grain));
  DO(cuMemAddressReserve(&range, grain, 0, 0, 0));
  if (clean) DO(cuMemAddressFree(range, grain));
  return 0;
}

int physical_memory(const Ground *ground, int cycle, int clean) {
  CUmemGenericAllocationHandle handle;
  size_t grain;
  (void)ground, (void)cycle;
  DO(granularity(&grain));
  DO(cuMemCreate(&handle, grain, &kProperties, 0));
  if (clean) DO(cuMemRelease(handle));
  return 0;
}

// One range and one piece of memory for all cycles: only the mappings grow.
int mapping(const Ground *ground, int cycle, int clean) {
  static CUdeviceptr range;
  static CUmemGenericAllocationHandle handle;
  size_t grain;
  CUdeviceptr at;
  (void)ground;
  DO(granularity(&grain));
  if (range == 0) DO(cuMemAddressReserve(&range, kMostCycles * grain, 0, 0, 0));
  if (handle == 0) DO(cuMemCreate(&handle, grain, &kProperties, 0));
  at = range + (size_t)cycle * grain;
  DO(cuMemMap(at, grain, 0, handle, 0));
  if (clean) DO(cuMemUnmap(at, grain));
  return 0;
}

// A pool over memory that lives as long as the program.
int block(const Ground *ground, int cycle, int clean) {
  const uint64_t mine = (uint64_t)(uintptr_t)registered[clean ? 0 : cycle];
  (void)ground;
  cuaudit_block_out(mine, kBytes);
  if (clean) cuaudit_block_back(mine);
  return 0;
}

static const CUDA_ARRAY3D_DESCRIPTOR kShape = {
    .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SURFACE_LDST};

// One array for all cycles: only what is bound to it grows.
static CUresult bound_array(CUDA_RESOURCE_DESC *resource) {
  static CUarray shared;
  CUresult result = CUDA_SUCCESS;
  if (shared == 0) result = cuArray3DCreate(&shared, &kShape);
  *resource = (CUDA_RESOURCE_DESC){.resType = CU_RESOURCE_TYPE_ARRAY, .res = {.array = {.hArray = shared}}};
  return result;
}

int array(const Ground *ground, int cycle, int clean) {
  CUarray made;
  (void)ground, (void)cycle;
  DO(cuArray3DCreate(&made, &kShape));
  if (clean) DO(cuArrayDestroy(made));
  return 0;
}

int mipmapped_array(const Ground *ground, int cycle, int clean) {
  CUmipmappedArray made;
  (void)ground, (void)cycle;
  DO(cuMipmappedArrayCreate(&made, &kShape, 3));
  if (clean) DO(cuMipmappedArrayDestroy(made));
  return 0;
}

int texture_object(const Ground *ground, int cycle, int clean) {
  const CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
  CUDA_RESOURCE_DESC resource;
  CUtexObject made;
  (void)ground, (void)cycle;
  DO(bound_array(&resource));
  DO(cuTexObjectCreate(&made, &resource, &how, 0));
  if (clean) DO(cuTexObjectDestroy(made));
  return 0;
}

int surface_object(const Ground *ground, int cycle, int clean) {
  CUDA_RESOURCE_DESC resource;
  CUsurfObject made;
  (void)ground, (void)cycle;
  DO(bound_array(&resource));
  DO(cuSurfObjectCreate(&made, &resource));
  if (clean) DO(cuSurfObjectDestroy(made));
  return 0;
}

int module(const Ground *ground, int cycle, int clean) {
  CUmodule made;
  (void)ground, (void)cycle;
  DO(cuModuleLoadData(&made, kPtx));
  if (clean) DO(cuModuleUnload(made));
  return 0;
}

int library(const Ground *ground, int cycle, int clean) {
  CUlibrary made;
  (void)ground, (void)cycle;
  DO(cuLibraryLoadData(&made, kPtx, 0, 0, 0, 0, 0, 0));
  if (clean) DO(cuLibraryUnload(made));
  return 0;
}

int link_state(const Ground *ground, int cycle, int clean) {
  CUlinkState made;
  (void)ground, (void)cycle;
  DO(cuLinkCreate(0, 0, 0, &made));
  if (clean) DO(cuLinkDestroy(made));
  return 0;
}
