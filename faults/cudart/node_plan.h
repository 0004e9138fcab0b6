// SPDX-License-Identifier: MIT
// node_plan.h: parameters of graph nodes, from the runtime's structures to the driver's and back.
//
//   Owns      nothing.
//   Threads   safe.
//   Units     as the structures; a cudaMemcpy3DParms counts elements along x where an array takes part, the driver always bytes.
//   Errors    those of copy_plan.h and kernels.h; cudaErrorInvalidValue for a null structure.
//   Faults    makes driver calls: CtxGetCurrent, Array3DGetDescriptor, and those of kernels.h.
//   Source    CUDA Runtime API 13.0, graph management.
#pragma once

#include "faults/cudart/copy_plan.h"
#include "faults/cudart/kernels.h"
#include "faults/cudart/twins.h"

namespace cuaudit::cudart {

// The current context: a node of the runtime belongs to it.
cudaError_t CurrentContext(DriverRef driver, CUcontext* context) noexcept;

cudaError_t PlanKernel(DriverRef driver, const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* plan) noexcept;
// cudaErrorInvalidDeviceFunction for a kernel that was not registered: there is no address to name it by.
cudaError_t KernelParameters(DriverRef driver, const CUDA_KERNEL_NODE_PARAMS& from, cudaKernelNodeParams* parameters) noexcept;

cudaError_t PlanCopyNode(DriverRef driver, const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* plan) noexcept;
cudaError_t PlanLinearCopy(void* to, const void* from, size_t count, enum cudaMemcpyKind kind, CUDA_MEMCPY3D* plan) noexcept;
cudaError_t CopyParameters(DriverRef driver, const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* parameters) noexcept;

// cudaGraphNodeParams of any type. What the driver wrote (an address, child graphs) goes back with TakeResults.
cudaError_t PlanNode(DriverRef driver, const cudaGraphNodeParams* from, CUgraphNodeParams* plan) noexcept;
void TakeResults(const CUgraphNodeParams& plan, cudaGraphNodeParams* to) noexcept;

}  // namespace cuaudit::cudart
