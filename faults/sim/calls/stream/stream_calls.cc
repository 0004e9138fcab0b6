// SPDX-License-Identifier: MIT
// Streams, and host functions that wait in them.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/clock.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

CUresult Create(Call& call, CUstream* out, unsigned flags, int priority) {
  if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) return CUDA_ERROR_INVALID_VALUE;
  Stream* const stream = MakeStream(call.world, call.context, true);
  if (stream == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  stream->flags = flags;
  if (call.context->greens != 0) stream->green = CurrentGreen(call.world, call.thread);
  stream->blocking = flags == 0;
  stream->priority = ClampPriority(priority);
  *out = ToHandle<CUstream>(stream);
  return CUDA_SUCCESS;
}

// Flags, device and id of a captured stream cannot be queried, in any capture mode of the stream or thread.
Stream* FindUncaptured(Call& call, CUstream handle, CUresult* result) {
  Stream* const stream = FindStream(call, handle, result);
  if (stream == nullptr || stream->capture == nullptr) return stream;
  Invalidate(stream->capture);
  *result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return nullptr;
}

}  // namespace

CUresult api::StreamCreate(Call& call, CUstream* out, unsigned int flags) { return Create(call, out, flags, 0); }

CUresult api::StreamCreateWithPriority(Call& call, CUstream* out, unsigned int flags, int priority) {
  return Create(call, out, flags, priority);
}

CUresult api::StreamDestroy(Call& call, CUstream handle) {
  const bool is_default = handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (is_default) return call.context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  Stream* const stream = call.Follow<Stream>(handle);
  if (stream == nullptr && call.world.DiedWithGreen(handle)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream == nullptr) return call.world.DiedWithContext(handle) ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = Borrow(call, stream->owner);
  if (result != CUDA_SUCCESS) return result;
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
  Context* const owner = stream->owner;
  Stream* const busy = stream->legacy ? BusyBlocking(call.world, owner) : (IsIdle(stream) ? nullptr : stream);
  if (busy != nullptr) {
    Nudge(call.world, call.thread, Goal{busy, call.world.next_ticket});
    return CUDA_ERROR_NOT_READY;
  }
  const std::uint64_t context = owner->handle;
  if (stream->legacy) {
    DrainLegacy(call, owner);
  } else {
    Drain(call, stream);
  }
  return StateAfterWait(call.world, context);
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
  const std::uint64_t context = owner->handle;
  if (stream->legacy) {
    if ((result = RefuseImplicit(call.world, owner)) != CUDA_SUCCESS) return result;
    DrainLegacy(call, owner);
  } else {
    Drain(call, stream);
  }
  TrimPools(call.world);
  return StateAfterWait(call.world, context);
}

CUresult api::StreamWaitEvent(Call& call, CUstream handle, CUevent event_handle, unsigned int flags) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  Event* const event = call.Follow<Event>(event_handle);
  if (event == nullptr) return call.Gone(event_handle);
  if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags == CU_EVENT_WAIT_EXTERNAL) return CaptureExternal(call.world, stream, WorkType::Wait, event_handle);
  if (event->capture != nullptr || stream->capture != nullptr) return CaptureWait(call.world, stream, event);
  if (event->was_captured) return CUDA_ERROR_INVALID_VALUE;
  if (event->foreign) ObserveStranger(call.world, stream);
  // Work that the host knows to be done needs no waiting. Work that merely ran early still delays the stream in virtual time.
  if (event->marker == nullptr || (event->marker->time <= call.world.clock && IsOver(call.world, *event->marker))) return CUDA_SUCCESS;
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
  const Stream* const stream = FindUncaptured(call, handle, &result);
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
  if (stream != nullptr) *out = ToHandle<CUcontext>(stream->green == nullptr ? stream->owner : stream->green->view);
  return result;
}

#ifdef CUAUDIT_HAS_StreamGetCtx_v2
CUresult api::StreamGetCtx_v2(Call& call, CUstream handle, CUcontext* out, CUgreenCtx* green) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (out != nullptr) *out = ToHandle<CUcontext>(stream->owner);
  if (green != nullptr) *green = stream->green == nullptr ? nullptr : ToHandle<CUgreenCtx>(stream->green);
  return CUDA_SUCCESS;
}
#endif

#ifdef CUAUDIT_HAS_StreamGetDevice
CUresult api::StreamGetDevice(Call& call, CUstream handle, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindUncaptured(call, handle, &result);
  if (stream != nullptr) *device = stream->owner->device;
  return result;
}
#endif

CUresult api::StreamGetId(Call& call, CUstream handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindUncaptured(call, handle, &result);
  if (stream != nullptr) *id = stream->id;
  return result;
}

CUresult api::StreamAttachMemAsync(Call& call, CUstream handle, CUdeviceptr address, std::size_t bytes, unsigned int flags) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  const Range* const range = call.world.ranges.Find(address);
  if (range == nullptr || range->kind != Kind::ManagedMemory || (bytes != 0 && bytes != range->size)) return CUDA_ERROR_INVALID_VALUE;
  return flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE ? CUDA_SUCCESS
                                                                                                       : CUDA_ERROR_INVALID_VALUE;
}

namespace {

bool IsPolicy(CUsynchronizationPolicy policy) { return policy >= CU_SYNC_POLICY_AUTO && policy <= CU_SYNC_POLICY_BLOCKING_SYNC; }

bool IsWindow(const Profile& profile, const CUaccessPolicyWindow& window) {
  if (window.num_bytes > static_cast<std::size_t>(profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE))) return false;
  if (!(window.hitRatio >= 0.0F && window.hitRatio <= 1.0F)) return false;
  if (window.hitProp < CU_ACCESS_PROPERTY_NORMAL || window.hitProp > CU_ACCESS_PROPERTY_PERSISTING) return false;
  return window.missProp == CU_ACCESS_PROPERTY_NORMAL || window.missProp == CU_ACCESS_PROPERTY_STREAMING;
}

bool IsDomainMap(const Profile& profile, const CUlaunchMemSyncDomainMap& map) {
  const int domains = profile.Attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
  return map.default_ < domains && map.remote < domains;
}

}  // namespace

CUresult api::StreamGetAttribute(Call& call, CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const StreamAttributes& kept = stream->attributes;
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow = kept.window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      std::memcpy(&value->syncPolicy, &kept.policy, sizeof(kept.policy));
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = stream->priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap = kept.domains;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = kept.domain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult api::StreamSetAttribute(Call& call, CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  StreamAttributes& kept = stream->attributes;
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      if (!IsWindow(*call.world.profile, value->accessPolicyWindow)) return CUDA_ERROR_INVALID_VALUE;
      kept.window = value->accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      if (!IsPolicy(value->syncPolicy)) return CUDA_ERROR_INVALID_VALUE;
      kept.policy = static_cast<std::uint32_t>(value->syncPolicy);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      stream->priority = ClampPriority(value->priority);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      if (!IsDomainMap(*call.world.profile, value->memSyncDomainMap)) return CUDA_ERROR_INVALID_VALUE;
      kept.domains = value->memSyncDomainMap;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      if (value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT && value->memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE)
        return CUDA_ERROR_INVALID_VALUE;
      kept.domain = value->memSyncDomain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult api::StreamCopyAttributes(Call& call, CUstream to_handle, CUstream from_handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const to = FindStream(call, to_handle, &result);
  if (to == nullptr) return result;
  const Stream* const from = FindStream(call, from_handle, &result);
  if (from == nullptr) return result;
  if (to->owner != from->owner) return CUDA_ERROR_INVALID_VALUE;
  to->attributes = from->attributes;
  to->priority = from->priority;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
