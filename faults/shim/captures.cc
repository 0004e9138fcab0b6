// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/captures.h"

#include "faults/driver/effects.h"
#include "faults/driver/result.h"
#include "faults/driver/shape.h"

namespace cuaudit::faults {
namespace {

using driver::Effect;

// Calls whose addresses are not among their arguments.
bool HidesAddresses(driver::BaseId base) noexcept {
  switch (base) {
    case driver::BaseId::LaunchKernel:
    case driver::BaseId::LaunchKernelEx:
    case driver::BaseId::LaunchCooperativeKernel:
    case driver::BaseId::GraphLaunch:
    case driver::BaseId::Memcpy2DAsync:
    case driver::BaseId::Memcpy3DAsync:
    case driver::BaseId::Memcpy3DPeerAsync:
    case driver::BaseId::StreamBatchMemOp:
      return true;
    default:
      return false;
  }
}

// The stream that a call queues work on which touches memory.
bool QueuesOn(const Passage& passage, std::uint64_t* stream) noexcept {
  const driver::BaseId base = driver::BaseOf(passage.id);
  const Effect effect = driver::EffectOf(base).effect;
  if (effect != Effect::Uses && effect != Effect::LaunchesGraph) return false;
  if (base == driver::BaseId::LaunchKernelEx) {
    const auto* const launch = reinterpret_cast<const CUlaunchConfig*>(passage.value[0]);
    if (launch != nullptr) *stream = reinterpret_cast<std::uintptr_t>(launch->hStream);
    return launch != nullptr;
  }
  const driver::Shape& shape = driver::ShapeOf(passage.id);
  bool touches = HidesAddresses(base);
  bool queues = false;
  for (std::size_t i = 0; i < shape.count; ++i) {
    if (shape.parameter[i].output) continue;
    touches = touches || shape.parameter[i].family == driver::Family::Pointer;
    if (shape.parameter[i].family != driver::Family::Stream) continue;
    *stream = passage.value[i];
    queues = true;
  }
  return queues && touches;
}

CUstream StreamOf(const Passage& passage) noexcept {
  const bool own = passage.stream == 0 && driver::Row(passage.id).per_thread;
  return own ? CU_STREAM_PER_THREAD : reinterpret_cast<CUstream>(passage.stream);
}

}  // namespace

void Captures::See(driver::DriverRef next, Passage* passage) noexcept {
  if (!QueuesOn(*passage, &passage->stream)) return;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  passage->captured = next.StreamIsCapturing(StreamOf(*passage), &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void Captures::End(CUresult result) noexcept {
  if (!driver::IsCaptureOver(result)) return;
  std::int32_t open = open_.load(std::memory_order_relaxed);
  while (open > 0 && !open_.compare_exchange_weak(open, open - 1, std::memory_order_relaxed)) {
  }
}

// The node that a call has just become is what the stream's next work depends on.
void Captures::TellNode(driver::DriverRef next, const Passage& passage, Record* record) noexcept {
  CUstream const stream = StreamOf(passage);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  std::size_t count = 0;
#if CUDA_VERSION >= 13000
  const CUgraphEdgeData* edges = nullptr;
  const CUresult result = next.StreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, &edges, &count);
#else
  const CUresult result = next.StreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, &count);
#endif
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1) return;
  record->argument[0] = reinterpret_cast<std::uintptr_t>(nodes[0]);
  record->argument[2] = reinterpret_cast<std::uintptr_t>(graph);
}

}  // namespace cuaudit::faults
