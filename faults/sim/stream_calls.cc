// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/capture.h"
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"

namespace cuaudit::sim {
namespace {

constexpr int kGreatestPriority = -5;

CUresult Create(Call& call, CUstream* out, unsigned flags, int priority) {
  if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* const stream = MakeStream(call.world, call.context, true);
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  stream->flags = flags;
  stream->blocking = flags == 0;
  stream->priority = priority > 0 ? 0 : (priority < kGreatestPriority ? kGreatestPriority : priority);
  *out = ToHandle<CUstream>(stream);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::StreamCreate(Call& call, CUstream* out, unsigned int flags) { return Create(call, out, flags, 0); }

CUresult api::StreamCreateWithPriority(Call& call, CUstream* out, unsigned int flags, int priority) {
  return Create(call, out, flags, priority);
}

CUresult api::StreamDestroy(Call& call, CUstream handle) {
  Stream* const stream = call.world.Find<Stream>(handle);
  if (stream == nullptr) return call.world.DiedWithContext(handle) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, stream->owner);
  if (result != CUDA_SUCCESS) return result;
  Drain(call, stream);
  FreeStream(call.world, stream);
  return CUDA_SUCCESS;
}

CUresult api::StreamQuery(Call& call, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream->legacy && (result = RefuseImplicit(call.world, call.context)) != CUDA_SUCCESS) return result;
  if (!IsIdle(stream)) {
    RunNext(call, stream);
    return CUDA_ERROR_NOT_READY;
  }
  if (stream->legacy && call.world.pending != 0) {
    for (Stream* const other : stream->owner->streams) {
      if (!other->blocking || IsIdle(other)) continue;
      RunNext(call, other);
      return CUDA_ERROR_NOT_READY;
    }
  }
  return stream->owner->sticky;
}

CUresult api::StreamSynchronize(Call& call, CUstream handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (stream->capture != nullptr) {
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Context* const owner = stream->owner;
  if (stream->legacy) {
    if ((result = RefuseImplicit(call.world, owner)) != CUDA_SUCCESS) return result;
    // Waiting for the legacy stream waits for the blocking streams too.
    for (bool again = call.world.pending != 0; again;) {
      again = false;
      for (std::size_t i = 0; i < owner->streams.size() && !again; ++i) {
        Stream* const other = owner->streams[i];
        if (!other->blocking || IsIdle(other)) continue;
        Drain(call, other);
        again = true;
      }
    }
  } else {
    Drain(call, stream);
  }
  TrimPools(call.world);
  return owner->sticky;
}

CUresult api::StreamWaitEvent(Call& call, CUstream handle, CUevent event_handle, unsigned int flags) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  Event* const event = call.world.Find<Event>(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (event->capture != nullptr || stream->capture != nullptr) return CaptureWait(call.world, stream, event);
  if (event->marker == nullptr || event->marker->done) return CUDA_SUCCESS;
  Work work;
  work.type = WorkType::Wait;
  work.marker = event->marker;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, work);
  if (result == CUDA_SUCCESS) ++event->marker->references;
  return result;
}

CUresult api::StreamAddCallback(Call& call, CUstream handle, CUstreamCallback callback, void* argument, unsigned int flags) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    Invalidate(stream->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  Work work;
  work.type = WorkType::Callback;
  work.callback = {callback, argument, handle};
  return Submit(call, stream, CU_GRAPH_NODE_TYPE_EMPTY, work);
}

CUresult api::LaunchHostFunc(Call& call, CUstream handle, CUhostFn function, void* argument) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Work work;
  work.type = WorkType::HostFunction;
  work.host = {function, argument};
  return Submit(call, stream, CU_GRAPH_NODE_TYPE_HOST, work);
}

CUresult api::StreamGetFlags(Call& call, CUstream handle, unsigned int* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) *flags = stream->flags;
  return result;
}

CUresult api::StreamGetPriority(Call& call, CUstream handle, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) *priority = stream->priority;
  return result;
}

CUresult api::StreamGetCtx(Call& call, CUstream handle, CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) *out = ToHandle<CUcontext>(stream->owner);
  return result;
}

#ifdef CUAUDIT_HAS_StreamGetCtx_v2
CUresult api::StreamGetCtx_v2(Call& call, CUstream handle, CUcontext* out, CUgreenCtx* green) {
  const CUresult result = StreamGetCtx(call, handle, out);
  if (result == CUDA_SUCCESS && green != nullptr) *green = nullptr;
  return result;
}
#endif

#ifdef CUAUDIT_HAS_StreamGetDevice
CUresult api::StreamGetDevice(Call& call, CUstream handle, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) *device = stream->owner->device;
  return result;
}
#endif

CUresult api::StreamGetId(Call& call, CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr) *id = stream->id;
  return result;
}

CUresult api::StreamAttachMemAsync(Call& call, CUstream handle, CUdeviceptr address, std::size_t, unsigned int flags) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  const Range* const range = call.world.ranges.Find(address);
  if (range == nullptr || range->kind != Kind::ManagedMemory) return CUDA_ERROR_INVALID_VALUE;
  return flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE ? CUDA_SUCCESS
                                                                                                       : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace cuaudit::sim
