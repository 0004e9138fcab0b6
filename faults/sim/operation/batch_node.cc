// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/operation/batch_node.h"

#include "faults/sim/kernel/arguments.h"
#include "faults/sim/operation/value_work.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kMostOperations = 256;

}  // namespace

CUresult BatchWork(Call& call, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Work* work) noexcept {
  if (parameters == nullptr || parameters->flags != 0 || parameters->count > kMostOperations) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->count != 0 && parameters->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.world.Find<Context>(parameters->ctx) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < parameters->count; ++i) {
    Work each;
    const CUresult result = ReadValueOperation(call.world, parameters->paramArray[i], &each);
    if (result != CUDA_SUCCESS) return result;
  }
  const std::size_t bytes = parameters->count * sizeof(CUstreamBatchMemOpParams);
  Arguments* const kept = MakeArguments(call.world, 0, bytes);
  if (kept == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes != 0) std::memcpy(kept->values, parameters->paramArray, bytes);
  work->type = WorkType::Batch;
  work->arguments = kept;
  work->batch = *parameters;
  work->batch.paramArray = reinterpret_cast<CUstreamBatchMemOpParams*>(kept->values);
  return CUDA_SUCCESS;
}

CUresult RunBatch(World& world, const Work& work) noexcept {
  for (unsigned i = 0; i < work.batch.count; ++i) {
    Work each;
    (void)ReadValueOperation(world, work.batch.paramArray[i], &each);  // it was good when the node was made
    CUresult result = CUDA_SUCCESS;
    if (each.type == WorkType::Await) result = IsSatisfied(world, each.value) ? RunAwait(world, each.value) : CUDA_ERROR_LAUNCH_TIMEOUT;
    if (each.type == WorkType::Write) result = RunWrite(world, each.value);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
