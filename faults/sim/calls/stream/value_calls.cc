// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/operation/batch_node.h"
#include "faults/sim/operation/value_work.h"
#include "faults/sim/stream/queue.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kMostOperations = 255;  // 256 are refused by an H200

CUresult CaptureBatch(Call& call, Stream* stream, unsigned count, const CUstreamBatchMemOpParams* operations) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS parameters{};
  parameters.ctx = ToHandle<CUcontext>(stream->owner);
  parameters.count = count;
  parameters.paramArray = const_cast<CUstreamBatchMemOpParams*>(operations);
  Work work;
  CUresult result = BatchWork(call, &parameters, &work);
  if (result != CUDA_SUCCESS) return result;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work);
  DropArguments(call.world, work);
  return result;
}

// All of them or none.
CUresult Queue(Call& call, CUstream handle, unsigned count, const CUstreamBatchMemOpParams* operations) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Work work;
    result = ReadValueOperation(call.world, operations[i], &work);
  }
  if (result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) return CaptureBatch(call, stream, count, operations);
  for (unsigned i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    Work work;
    (void)ReadValueOperation(call.world, operations[i], &work);
    if (work.type != WorkType::Nothing) result = Submit(call, stream, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work);
  }
  return result;
}

CUresult Wait(Call& call, CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags, CUstreamBatchMemOpType type) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = type;
  operation.waitValue.address = address;
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return Queue(call, stream, 1, &operation);
}

CUresult Write(Call& call, CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags, CUstreamBatchMemOpType type) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = type;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  operation.writeValue.flags = flags;
  return Queue(call, stream, 1, &operation);
}

}  // namespace

CUresult api::StreamWaitValue32(Call& call, CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Wait(call, stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_32);
}

CUresult api::StreamWaitValue64(Call& call, CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Wait(call, stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_64);
}

CUresult api::StreamWriteValue32(Call& call, CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Write(call, stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_32);
}

CUresult api::StreamWriteValue64(Call& call, CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Write(call, stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_64);
}

CUresult api::StreamBatchMemOp(Call& call, CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  if (flags != 0 || count > kMostOperations || (count != 0 && operations == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return Queue(call, stream, count, operations);
}

}  // namespace cuaudit::sim
