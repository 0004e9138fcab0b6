// SPDX-License-Identifier: MIT
// Events.
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

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

// The event, if the host may wait for it.
Event* FindToWaitFor(Call& call, CUevent handle, CUresult* result) {
  Event* const event = call.world.Find<Event>(handle);
  *result = event == nullptr ? CUDA_ERROR_INVALID_HANDLE : Borrow(call, event->owner);
  if (*result == CUDA_SUCCESS) *result = RefuseCaptured(event);
  return *result == CUDA_SUCCESS ? event : nullptr;
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
  EndShare(call.world, event->share);
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
  result = RecordOn(call, stream, event);
  // A waiter in another process cannot run this process's work.
  const bool waits = (event->share != 0 || event->foreign) && call.thread->inside == Inside::Nothing;
  if (result == CUDA_SUCCESS && waits) Drain(call, stream);
  return result;
}

CUresult api::EventRecordWithFlags(Call& call, CUevent handle, CUstream stream_handle, unsigned int flags) {
  if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags == 0) return EventRecord(call, handle, stream_handle);
  const Event* const event = call.world.Find<Event>(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  if (stream == nullptr) return result;
  if (event->owner != stream->owner) return CUDA_ERROR_INVALID_HANDLE;
  return CaptureExternal(call.world, stream, WorkType::Record, handle);
}

CUresult api::EventQuery(Call& call, CUevent handle) {
  CUresult result = CUDA_SUCCESS;
  Event* const event = FindToWaitFor(call, handle, &result);
  if (event == nullptr) return result;
  const std::uint64_t context = event->owner->handle;
  if (const Marker* const marker = event->marker; marker != nullptr && !marker->done) {
    Nudge(call.world, call.thread, Goal{marker->stream, marker->ticket + 1});
    return CUDA_ERROR_NOT_READY;
  }
  DrainMarker(call, event->marker);
  return StateAfterWait(call.world, context);
}

CUresult api::EventSynchronize(Call& call, CUevent handle) {
  CUresult result = CUDA_SUCCESS;
  Event* const event = FindToWaitFor(call, handle, &result);
  if (event == nullptr) return result;
  const std::uint64_t context = event->owner->handle;
  DrainMarker(call, event->marker);
  TrimPools(call.world);
  return StateAfterWait(call.world, context);
}

CUresult api::EventElapsedTime(Call& call, float* milliseconds, CUevent start_handle, CUevent end_handle) {
  const Event* const start = call.world.Find<Event>(start_handle);
  const Event* const end = call.world.Find<Event>(end_handle);
  if (milliseconds == nullptr || start == nullptr || end == nullptr || start->owner != end->owner) return CUDA_ERROR_INVALID_HANDLE;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  const auto leads_nowhere = [](const Event* event) { return event->was_captured && event->capture == nullptr; };
  if (leads_nowhere(start) || leads_nowhere(end)) return CUDA_ERROR_INVALID_VALUE;
  if (start->marker == nullptr || end->marker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!start->marker->done || !end->marker->done) return CUDA_ERROR_NOT_READY;
  const std::int64_t nanoseconds = static_cast<std::int64_t>(end->marker->time - start->marker->time);
  *milliseconds = static_cast<float>(nanoseconds) / kNanosecondsPerMillisecond;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
