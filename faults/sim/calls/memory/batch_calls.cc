// SPDX-License-Identifier: MIT
// Copies in batches.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

// A batch runs as single copies in its stream's order. A device may run them in any order.
#ifdef CUAUDIT_HAS_MemcpyBatchAsync
namespace cuaudit::sim {
namespace {

// A batch needs a current context, and a stream that is neither the legacy one nor captured.
CUresult FindBatchStream(Call& call, CUstream handle, Stream** stream) {
  if (call.context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  *stream = FindStream(call, handle, &result);
  if (*stream == nullptr) return result;
  if ((*stream)->legacy) return CUDA_ERROR_INVALID_VALUE;
  if ((*stream)->capture == nullptr) return CUDA_SUCCESS;
  Invalidate((*stream)->capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool IsOrder(CUmemcpySrcAccessOrder order) {
  return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
         order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

// All or nothing: the first bad copy is reported before any is queued. `order` tells whether the source must be read before the call
// returns.
template <typename CopyOf, typename OrderOf>
CUresult Queue(Call& call, std::size_t count, Stream* stream, std::size_t* failed, const CopyOf& copy_of, const OrderOf& order_of) {
  for (std::size_t i = 0; i < count; ++i) {
    CUDA_MEMCPY3D copy{};
    CUresult result = copy_of(i, &copy);
    if (result == CUDA_SUCCESS && copy.WidthInBytes == 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = CheckCopy(call.world, copy);
    if (result == CUDA_SUCCESS) continue;
    if (failed != nullptr) *failed = i;
    return result;
  }
  bool wait = false;
  for (std::size_t i = 0; i < count; ++i) {
    Work work;
    work.type = WorkType::Copy;
    (void)copy_of(i, &work.copy);
    const CUresult result = Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMCPY, work);
    if (result != CUDA_SUCCESS) return result;
    wait = wait || order_of(i) == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL || TouchesPageable(call.world, work.copy);
  }
  if (!wait) return CUDA_SUCCESS;
  const std::uint64_t context = call.context->handle;
  Drain(call, stream);
  return StateAfterWait(call.world, context);
}

CUresult Batch(Call& call, const CUdeviceptr* to, const CUdeviceptr* from, const std::size_t* sizes, std::size_t count,
               const CUmemcpyAttributes* attributes, const std::size_t* firsts, std::size_t attribute_count, std::size_t* failed,
               CUstream handle) {
  if (failed != nullptr) *failed = ~std::size_t{0};
  Stream* stream = nullptr;
  const CUresult result = FindBatchStream(call, handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (attributes == nullptr || firsts == nullptr || attribute_count == 0 || attribute_count > count || firsts[0] != 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < attribute_count; ++i) {
    if (i != 0 && (firsts[i] <= firsts[i - 1] || firsts[i] >= count)) return CUDA_ERROR_INVALID_VALUE;
    if (!IsOrder(attributes[i].srcAccessOrder)) return CUDA_ERROR_INVALID_VALUE;
  }
  return Queue(
      call, count, stream, failed,
      [&](std::size_t i, CUDA_MEMCPY3D* copy) {
        *copy = LinearCopy(CU_MEMORYTYPE_UNIFIED, to[i], CU_MEMORYTYPE_UNIFIED, from[i], sizes[i]);
        const CUresult usable = CheckCopy(call.world, *copy);
        return usable == CUDA_SUCCESS ? usable : call.Undefined(usable);
      },
      [&](std::size_t i) {
        std::size_t at = attribute_count - 1;
        while (firsts[at] > i) --at;
        return attributes[at].srcAccessOrder;
      });
}

// Rows and layers count elements: of an array where there is one, bytes otherwise.
CUresult Widen(const World& world, const CUDA_MEMCPY3D_BATCH_OP& from, CUDA_MEMCPY3D* copy) {
  std::uint64_t element = 1;
  for (const CUmemcpy3DOperand* const side : {&from.src, &from.dst}) {
    if (side->type == CU_MEMCPY_OPERAND_TYPE_POINTER) continue;
    const Array* const array = side->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? world.Find<Array>(side->op.array.array) : nullptr;
    if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
    element = array->element;
  }
  if (from.extent.width == 0 || from.extent.height == 0 || from.extent.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  *copy = {};
  copy->WidthInBytes = from.extent.width * element;
  copy->Height = from.extent.height;
  copy->Depth = from.extent.depth;
  if (from.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
    copy->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy->srcDevice = from.src.op.ptr.ptr;
    copy->srcPitch = from.src.op.ptr.rowLength * element;
    copy->srcHeight = from.src.op.ptr.layerHeight;
  } else {
    copy->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->srcArray = from.src.op.array.array;
    copy->srcXInBytes = from.src.op.array.offset.x * element;
    copy->srcY = from.src.op.array.offset.y;
    copy->srcZ = from.src.op.array.offset.z;
  }
  if (from.dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
    copy->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy->dstDevice = from.dst.op.ptr.ptr;
    copy->dstPitch = from.dst.op.ptr.rowLength * element;
    copy->dstHeight = from.dst.op.ptr.layerHeight;
  } else {
    copy->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy->dstArray = from.dst.op.array.array;
    copy->dstXInBytes = from.dst.op.array.offset.x * element;
    copy->dstY = from.dst.op.array.offset.y;
    copy->dstZ = from.dst.op.array.offset.z;
  }
  return CUDA_SUCCESS;
}

CUresult Batch3D(Call& call, std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* list, std::size_t* failed, unsigned long long flags,
                 CUstream handle) {
  if (failed != nullptr) *failed = ~std::size_t{0};
  Stream* stream = nullptr;
  const CUresult result = FindBatchStream(call, handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (list == nullptr || count == 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (!IsOrder(list[i].srcAccessOrder)) return CUDA_ERROR_INVALID_VALUE;
  }
  return Queue(
      call, count, stream, failed, [&](std::size_t i, CUDA_MEMCPY3D* copy) { return Widen(call.world, list[i], copy); },
      [&](std::size_t i) { return list[i].srcAccessOrder; });
}

}  // namespace

CUresult api::MemcpyBatchAsync(Call& call, CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attributes, std::size_t* firsts, std::size_t attribute_count, std::size_t* failed,
                               CUstream stream) {
  return Batch(call, to, from, sizes, count, attributes, firsts, attribute_count, failed, stream);
}

CUresult api::Memcpy3DBatchAsync(Call& call, std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, std::size_t* failed, unsigned long long flags,
                                 CUstream stream) {
  return Batch3D(call, count, list, failed, flags, stream);
}

#ifdef CUAUDIT_HAS_MemcpyBatchAsync_v2
CUresult api::MemcpyBatchAsync_v2(Call& call, CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                                  CUmemcpyAttributes* attributes, std::size_t* firsts, std::size_t attribute_count, CUstream stream) {
  return Batch(call, to, from, sizes, count, attributes, firsts, attribute_count, nullptr, stream);
}

CUresult api::Memcpy3DBatchAsync_v2(Call& call, std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                                    CUstream stream) {
  return Batch3D(call, count, list, nullptr, flags, stream);
}
#endif

}  // namespace cuaudit::sim
#endif
