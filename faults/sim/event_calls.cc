// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/capture.h"
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
constexpr float kNanosecondsPerMillisecond = 1e6F;

// Asking about an event whose last record was captured is forbidden, and invalid once the capture has ended.
CUresult RefuseCaptured(Event* event) {
  if (event->capture == nullptr) return event->was_captured ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  Invalidate(event->capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

}  // namespace

CUresult api::EventCreate(Call& call, CUevent* out, unsigned int flags) {
  if (out == nullptr || (flags & ~kEventFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Event* const event = call.world.Make<Event>(call.context);
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  event->flags = flags;
  *out = ToHandle<CUevent>(event);
  return CUDA_SUCCESS;
}

CUresult api::EventDestroy(Call& call, CUevent handle) {
  Event* const event = call.world.Find<Event>(handle);
  if (event == nullptr) return call.world.DiedWithContext(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, event->owner);
  if (result != CUDA_SUCCESS) return result;
  ForgetEvent(call.world, event);
  DropMarker(call.world, event->marker);
  call.world.Destroy(event);
  return CUDA_SUCCESS;
}

CUresult api::EventRecord(Call& call, CUevent handle, CUstream stream_handle) {
  Event* const event = call.world.Find<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (event->owner != stream->owner) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return CaptureRecord(call.world, stream, event);
  Marker* const marker = MakeMarker(call.world, stream);
  if (marker == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Work work;
  work.type = WorkType::Record;
  work.marker = marker;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, work);
  if (result != CUDA_SUCCESS) {
    DropMarker(call.world, marker);
    return result;
  }
  ++marker->references;
  ForgetEvent(call.world, event);
  DropMarker(call.world, event->marker);
  event->marker = marker;
  return CUDA_SUCCESS;
}

CUresult api::EventRecordWithFlags(Call& call, CUevent handle, CUstream stream, unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
  return EventRecord(call, handle, stream);
}

CUresult api::EventQuery(Call& call, CUevent handle) {
  Event* const event = call.world.Find<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = Borrow(call, event->owner);
  if (result == CUDA_SUCCESS) result = RefuseCaptured(event);
  if (result != CUDA_SUCCESS) return result;
  if (event->marker == nullptr || event->marker->done) return event->owner->sticky;
  RunNext(call, event->marker->stream);
  return CUDA_ERROR_NOT_READY;
}

CUresult api::EventSynchronize(Call& call, CUevent handle) {
  Event* const event = call.world.Find<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = Borrow(call, event->owner);
  if (result == CUDA_SUCCESS) result = RefuseCaptured(event);
  if (result != CUDA_SUCCESS) return result;
  const Context* const owner = event->owner;
  DrainMarker(call, event->marker);
  TrimPools(call.world);
  return owner->sticky;
}

CUresult api::EventElapsedTime(Call& call, float* milliseconds, CUevent start_handle, CUevent end_handle) {
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Event* const start = call.world.Find<Event>(start_handle);
  const Event* const end = call.world.Find<Event>(end_handle);
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  if (start->marker == nullptr || end->marker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->marker->done || !end->marker->done) return CUDA_ERROR_NOT_READY;
  const std::int64_t nanoseconds = static_cast<std::int64_t>(end->marker->time - start->marker->time);
  *milliseconds = static_cast<float>(nanoseconds) / kNanosecondsPerMillisecond;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
