// SPDX-License-Identifier: MIT
// leak_image.c: arrays and what is bound to them, and the kinds that hold code.
#include "leak_kind.h"

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
