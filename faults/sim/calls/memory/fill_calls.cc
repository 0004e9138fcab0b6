// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/copy.h"
#include "faults/sim/stream/queue.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

CUDA_MEMSET_NODE_PARAMS Fill(CUdeviceptr to, std::size_t pitch, unsigned value, unsigned element, std::size_t width, std::size_t height) {
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = to;
  fill.pitch = pitch;
  fill.value = value;
  fill.elementSize = element;
  fill.width = width;
  fill.height = height;
  return fill;
}

CUresult Queue(Call& call, const CUDA_MEMSET_NODE_PARAMS& fill, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  // A capture takes a fill of address 0; whoever runs the graph fails.
  const bool nowhere = stream->capture != nullptr && fill.dst == 0 && fill.height == 1;
  result = nowhere ? CUDA_SUCCESS : CheckFill(call.world, fill, stream->capture != nullptr);
  if (result != CUDA_SUCCESS || fill.width == 0 || fill.height == 0) return result;
  Work work;
  work.type = WorkType::Fill;
  work.fill = fill;
  return Submit(call, stream, CU_GRAPH_NODE_TYPE_MEMSET, work);
}

// Without "Async" a memset of device memory still does not wait for the device: it is queued on the default stream. One of pinned host
// or managed memory does.
CUresult Default(Call& call, const CUDA_MEMSET_NODE_PARAMS& fill) {
  const CUresult result = Queue(call, fill, nullptr);
  const Range* const range = call.world.ranges.Find(fill.dst);
  if (result != CUDA_SUCCESS || range == nullptr || !range->host_visible) return result;
  const std::uint64_t context = call.context->handle;
  CUresult ignored = CUDA_SUCCESS;
  if (Stream* const stream = FindStream(call, nullptr, &ignored)) Drain(call, stream);
  return StateAfterWait(call.world, context);
}

}  // namespace

CUresult api::MemsetD8(Call& call, CUdeviceptr to, unsigned char value, std::size_t count) {
  return Default(call, Fill(to, 0, value, 1, count, 1));
}
CUresult api::MemsetD16(Call& call, CUdeviceptr to, unsigned short value, std::size_t count) {
  return Default(call, Fill(to, 0, value, 2, count, 1));
}
CUresult api::MemsetD32(Call& call, CUdeviceptr to, unsigned int value, std::size_t count) {
  return Default(call, Fill(to, 0, value, 4, count, 1));
}
CUresult api::MemsetD8Async(Call& call, CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return Queue(call, Fill(to, 0, value, 1, count, 1), stream);
}
CUresult api::MemsetD16Async(Call& call, CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return Queue(call, Fill(to, 0, value, 2, count, 1), stream);
}
CUresult api::MemsetD32Async(Call& call, CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream) {
  return Queue(call, Fill(to, 0, value, 4, count, 1), stream);
}
CUresult api::MemsetD2D8(Call& call, CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height) {
  return Default(call, Fill(to, pitch, value, 1, width, height));
}
CUresult api::MemsetD2D16(Call& call, CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height) {
  return Default(call, Fill(to, pitch, value, 2, width, height));
}
CUresult api::MemsetD2D32(Call& call, CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width, std::size_t height) {
  return Default(call, Fill(to, pitch, value, 4, width, height));
}
CUresult api::MemsetD2D8Async(Call& call, CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
                              CUstream stream) {
  return Queue(call, Fill(to, pitch, value, 1, width, height), stream);
}
CUresult api::MemsetD2D16Async(Call& call, CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width, std::size_t height,
                               CUstream stream) {
  return Queue(call, Fill(to, pitch, value, 2, width, height), stream);
}
CUresult api::MemsetD2D32Async(Call& call, CUdeviceptr to, std::size_t pitch, unsigned int value, std::size_t width, std::size_t height,
                               CUstream stream) {
  return Queue(call, Fill(to, pitch, value, 4, width, height), stream);
}

}  // namespace cuaudit::sim
