// SPDX-License-Identifier: MIT
// node_plan.h: converts parameters of graph nodes between the runtime's structures and the driver's.
//
//   Units     those of the structures. In cudaMemcpy3DParms, x counts elements if either side is an array; the driver always counts bytes.
//   Errors    those of descriptions.h and registry.h; cudaErrorInvalidValue for a null structure.
//   Faults    calls the driver: CtxGetCurrent, Array3DGetDescriptor, and the calls of registry.h.
//   Source    CUDA Runtime API 13.0, Graph Management.
#pragma once

#include "faults/cudart/descriptions.h"
#include "faults/cudart/registry.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {

// The current context, which every node of the runtime belongs to.
cudaError_t CurrentContext(DriverRef driver, CUcontext* context) noexcept;

cudaError_t PlanKernel(DriverRef driver, const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* plan) noexcept;
// Returns cudaErrorInvalidDeviceFunction for a kernel that was not registered, because no host address stands for it.
cudaError_t KernelParameters(DriverRef driver, const CUDA_KERNEL_NODE_PARAMS& from, cudaKernelNodeParams* parameters) noexcept;

cudaError_t PlanCopyNode(DriverRef driver, const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* plan) noexcept;
cudaError_t PlanLinearCopy(void* to, const void* from, size_t count, enum cudaMemcpyKind kind, CUDA_MEMCPY3D* plan) noexcept;
cudaError_t CopyParameters(DriverRef driver, const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* parameters) noexcept;

// Converts cudaGraphNodeParams of any type. TakeResults copies back what the driver wrote: an address or child graphs.
cudaError_t PlanNode(DriverRef driver, const cudaGraphNodeParams* from, CUgraphNodeParams* plan) noexcept;
void TakeResults(const CUgraphNodeParams& plan, cudaGraphNodeParams* to) noexcept;

}  // namespace cuaudit::cudart
