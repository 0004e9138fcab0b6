// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/calls/module/launch.h"

#include "faults/sim/graph/capture.h"
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/stream/queue.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
CUresult RefuseLaunch(Call& call, CUstream handle, CUresult reason) noexcept {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr && stream->capture != nullptr) Invalidate(stream->capture);
  return reason;
}

CUresult LaunchOn(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, CUstream handle, bool cooperative) noexcept {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  call.context = stream->owner;  // a kernel of a library has a function there
  result = CheckKernel(call, kernel, stream->owner);
  if (result == CUDA_SUCCESS && cooperative) result = CheckCooperative(call, kernel);
  if (result != CUDA_SUCCESS) return RefuseLaunch(call, handle, result);
  Work work;
  work.type = WorkType::Kernel;
  work.kernel = kernel;
  if (call.world.Find<Kernel>(kernel.func) != nullptr) {  // the node has both
    work.kernel.kern = reinterpret_cast<CUkernel>(kernel.func);
    work.kernel.func = ToHandle<CUfunction>(FindLaunched(call, kernel.func, &result));
  }
  work.cooperative = cooperative;
  if (!CopyArguments(call.world, KernelSymbol(call.world, kernel), &work)) return CUDA_ERROR_OUT_OF_MEMORY;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_KERNEL, work);
  DropArguments(call.world, work);
  return result;
}

}  // namespace cuaudit::sim
