// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"

// Without a display nothing can be registered, so no handle names a resource.
namespace cuaudit::sim {
namespace {

CUresult CheckList(unsigned count, const CUgraphicsResource* resources) {
  return count == 0 || resources == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult api::GraphicsUnregisterResource(Call&, CUgraphicsResource) { return CUDA_ERROR_INVALID_HANDLE; }

CUresult api::GraphicsMapResources(Call&, unsigned int count, CUgraphicsResource* resources, CUstream) {
  return CheckList(count, resources);
}

CUresult api::GraphicsUnmapResources(Call&, unsigned int count, CUgraphicsResource* resources, CUstream) {
  return CheckList(count, resources);
}

CUresult api::GetExportTable(Call&, const void**, const CUuuid*) { return CUDA_ERROR_INVALID_VALUE; }

}  // namespace cuaudit::sim
