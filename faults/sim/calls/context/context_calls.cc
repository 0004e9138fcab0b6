// SPDX-License-Identifier: MIT
// Contexts: made, destroyed, current on a thread; primary contexts.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/stream/schedule.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kContextFlags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_COREDUMP_ENABLE |
                                   CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;

bool FlagsAreLegal(unsigned flags) {
  if ((flags & ~kContextFlags) != 0) return false;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return schedule == 0 || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC;
}

bool Push(Call& call, std::uint64_t handle) {
  if (!call.thread->stack.Push(call.world.arena, handle)) return false;
  call.world.Count(Kind::ContextStackEntry, 1);
  return true;
}

CUresult Create(Call& call, CUcontext* out, unsigned flags, CUdevice device, unsigned api_version) {
  World& world = call.world;
  if (out == nullptr || !FlagsAreLegal(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (device < 0 || device >= world.device_count) return CUDA_ERROR_INVALID_DEVICE;
  Context* const context = world.Make<Context>(nullptr);
  if (context == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  context->device = device;
  if (!StartContext(world, context) || !Push(call, context->handle)) {
    (void)EndContext(call, context);
    world.Destroy(context);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  context->flags = flags;
  if ((flags & CU_CTX_USER_COREDUMP_ENABLE) != 0)
    context->flags = (flags & ~unsigned{CU_CTX_USER_COREDUMP_ENABLE}) | CU_CTX_COREDUMP_ENABLE;
  context->api_version = api_version;
  context->id = world.next_id++;
  *out = ToHandle<CUcontext>(context);
  return CUDA_SUCCESS;
}

// A context the caller named: one that is gone or never was cannot be used.
Context* Named(Call& call, CUcontext handle) {
  Context* const context = call.world.Find<Context>(handle);
  return context != nullptr && context->active ? context : nullptr;
}

// cuCtx calls that take an explicit context mean the current one when given none.
CUresult NamedOrCurrent(Call& call, CUcontext handle, Context** context) {
  if (handle != nullptr) {
    *context = Named(call, handle);
    return *context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  }
  const CUresult result = CurrentContext(call.world, call.thread, context);
  if (result != CUDA_SUCCESS) return result;
  if (const GreenContext* const green = CurrentGreen(call.world, call.thread); green != nullptr) *context = green->view;
  return CUDA_SUCCESS;
}

// Of everything in the current context, or of one green context.
CUresult Synchronize(Call& call, const GreenContext* green) {
  for (Capture* capture = call.world.capture_list; capture != nullptr; capture = capture->next) {
    for (const Stream* const stream : capture->streams) {
      if (!IsStreamOf(stream, call.context, green)) continue;
      Invalidate(capture);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  const std::uint64_t handle = call.context->handle;
  DrainContext(call, call.context, green);
  TrimPools(call.world);
  return StateAfterWait(call.world, handle);
}

bool IsCurrentSomewhere(World& world, const Context* context) {
  for (Thread* thread : world.threads) {
    for (; thread != nullptr; thread = thread->next) {
      if (thread->stack.Contains(context->handle)) return true;
    }
  }
  return false;
}

void PopEntry(Call& call) {
  call.thread->stack.Truncate(call.thread->stack.size() - 1);
  call.world.Count(Kind::ContextStackEntry, -1);
}

}  // namespace

CUresult NamedContext(Call& call, CUcontext handle, Context** context, GreenContext** green) noexcept {
  const CUresult result = NamedOrCurrent(call, handle, context);
  if (result != CUDA_SUCCESS) return result;
  *green = (*context)->green;
  if (*green != nullptr) *context = (*green)->primary;
  return (*context)->sticky;
}

CUresult api::CtxCreate(Call& call, CUcontext* out, unsigned int flags, CUdevice device) { return Create(call, out, flags, device, 3020); }

// The interface before CUDA 3.2. The context remembers it, so that calls of the two interfaces can be told apart.
CUresult api::CtxCreate_v1(Call& call, CUcontext* out, unsigned int flags, CUdevice device) {
  return Create(call, out, flags, device, 3010);
}

CUresult api::CtxCreate_v3(Call& call, CUcontext* out, CUexecAffinityParam* parameters, int count, unsigned int flags, CUdevice device) {
  if (count < 0 || (count > 0 && parameters == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(call, out, flags, device, 3020);
}

#ifdef CUAUDIT_HAS_CtxCreate_v4
CUresult api::CtxCreate_v4(Call& call, CUcontext* out, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  if (parameters != nullptr && parameters->numExecAffinityParams != 0) {
    return parameters->execAffinityParams == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return Create(call, out, flags, device, 3020);
}
#endif

CUresult api::CtxDestroy(Call& call, CUcontext handle) {
  World& world = call.world;
  Context* const context = Named(call, handle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return world.IsStale(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
  if (context->primary || context->green != nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  // Another thread destroys it, perhaps while a host function of its streams runs.
  if (context->ending != 0 || !EndContext(call, context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  // Destroying the current context pops it; elsewhere it stays current and answers CONTEXT_IS_DESTROYED.
  if (!call.thread->stack.empty() && call.thread->stack[call.thread->stack.size() - 1] == context->handle) PopEntry(call);
  world.Destroy(context);
  return CUDA_SUCCESS;
}

CUresult api::CtxAttach(Call& call, CUcontext* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  ++call.context->attachments;
  *out = ToHandle<CUcontext>(call.context);
  return CUDA_SUCCESS;
}

CUresult api::CtxDetach(Call& call, CUcontext handle) {
  Context* const context = Named(call, handle);
  if (context == nullptr) return handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CtxDestroy(call, handle);
  const Vector<std::uint64_t>& stack = call.thread->stack;
  if (stack.empty() || stack[stack.size() - 1] != context->handle) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->attachments == 0) return context->primary ? CUDA_SUCCESS : CtxDestroy(call, handle);  // retained, never attached: it stays
  --context->attachments;
  return CUDA_SUCCESS;
}

CUresult api::CtxPushCurrent(Call& call, CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* const context = call.world.Find<Context>(handle);  // also a primary one that nobody retains: calls in it are refused
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Push(call, context->handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult api::CtxPushCurrent_v1(Call& call, CUcontext handle) {
  const Context* const context = call.world.Find<Context>(handle);
  return context != nullptr && IsCurrentSomewhere(call.world, context) ? CUDA_ERROR_INVALID_CONTEXT : CtxPushCurrent(call, handle);
}

CUresult api::CtxPopCurrent(Call& call, CUcontext* out) {
  if (call.thread->stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::uint64_t handle = call.thread->stack[call.thread->stack.size() - 1];
  PopEntry(call);
  if (out != nullptr) *out = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(handle));
  return CUDA_SUCCESS;
}

CUresult api::CtxSetCurrent(Call& call, CUcontext handle) {
  if (handle == nullptr) {
    if (!call.thread->stack.empty()) PopEntry(call);
    return CUDA_SUCCESS;
  }
  const Context* const context = call.world.Find<Context>(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.thread->stack.empty()) return Push(call, context->handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  call.thread->stack[call.thread->stack.size() - 1] = context->handle;
  return CUDA_SUCCESS;
}

CUresult api::CtxGetCurrent(Call& call, CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t handle = call.thread->stack.empty() ? 0 : call.thread->stack[call.thread->stack.size() - 1];
  *out = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(handle));
  return CUDA_SUCCESS;
}

CUresult api::CtxGetDevice(Call& call, CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = call.context->device;
  return CUDA_SUCCESS;
}

#ifdef CUAUDIT_HAS_CtxGetDevice_v2
CUresult api::CtxGetDevice_v2(Call& call, CUdevice* device, CUcontext handle) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult result = NamedOrCurrent(call, handle, &context);
  if (result == CUDA_SUCCESS) *device = context->device;
  return result;
}
#endif

CUresult api::CtxGetFlags(Call& call, unsigned int* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult result = CurrentContext(call.world, call.thread, &context);
  if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
    *flags = 0;  // a context that has ended still answers
    return CUDA_SUCCESS;
  }
  if (result != CUDA_SUCCESS) return result;
  *flags = context->flags | (context->primary ? unsigned{CU_CTX_MAP_HOST} : 0U);
  return CUDA_SUCCESS;
}

CUresult api::CtxSetFlags(Call& call, unsigned int flags) {
  if (!FlagsAreLegal(flags)) return CUDA_ERROR_INVALID_VALUE;
  call.context->flags = flags & ~unsigned{CU_CTX_MAP_HOST};
  return CUDA_SUCCESS;
}

CUresult api::CtxGetApiVersion(Call& call, CUcontext handle, unsigned int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult result = NamedOrCurrent(call, handle, &context);
  if (result == CUDA_SUCCESS) *version = context->api_version;
  return result;
}

CUresult api::CtxGetId(Call& call, CUcontext handle, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  const CUresult result = NamedOrCurrent(call, handle, &context);
  if (result == CUDA_SUCCESS) *id = context->id;
  return result;
}

CUresult api::CtxGetStreamPriorityRange(Call&, int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult api::CtxSynchronize(Call& call) { return Synchronize(call, CurrentGreen(call.world, call.thread)); }

#ifdef CUAUDIT_HAS_CtxSynchronize_v2
CUresult api::CtxSynchronize_v2(Call& call, CUcontext handle) {
  GreenContext* green = nullptr;
  const CUresult result = NamedContext(call, handle, &call.context, &green);
  return result == CUDA_SUCCESS ? Synchronize(call, green) : result;
}
#endif

namespace {

constexpr unsigned kPrimaryFlags =
    CU_CTX_SCHED_MASK | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;

DeviceState* Device(Call& call, CUdevice device) {
  return device >= 0 && device < call.world.device_count ? &call.world.devices[device] : nullptr;
}

CUresult Revive(World& world, const DeviceState& state) {
  if (state.primary->active) return CUDA_SUCCESS;
  if (!StartContext(world, state.primary)) return CUDA_ERROR_OUT_OF_MEMORY;
  state.primary->flags = state.primary_flags;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult HoldPrimary(World& world, CUdevice device) noexcept {
  const CUresult result = Revive(world, world.devices[device]);
  if (result == CUDA_SUCCESS) ++world.devices[device].primary->greens;
  return result;
}

void DropPrimary(Call& call, Context* primary) noexcept {
  --primary->greens;
  EndUnlessHeld(call, primary);
}

CUresult api::DevicePrimaryCtxRetain(Call& call, CUcontext* out, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DeviceState* const state = Device(call, device);
  if (state == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* const context = state->primary;
  const CUresult result = Revive(call.world, *state);
  if (result != CUDA_SUCCESS) return result;
  ++context->references;
  call.world.Count(Kind::PrimaryContext, 1);
  *out = ToHandle<CUcontext>(context);
  return CUDA_SUCCESS;
}

CUresult api::DevicePrimaryCtxRelease(Call& call, CUdevice device) {
  DeviceState* const state = Device(call, device);
  if (state == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* const context = state->primary;
  if (context->references == 0) return CUDA_ERROR_INVALID_CONTEXT;
  call.world.Count(Kind::PrimaryContext, -1);
  --context->references;
  EndUnlessHeld(call, context);
  return CUDA_SUCCESS;
}

CUresult api::DevicePrimaryCtxReset(Call& call, CUdevice device) {
  DeviceState* const state = Device(call, device);
  if (state == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* const context = state->primary;
  if (context->greens != 0) return CUDA_ERROR_NOT_PERMITTED;
  if (context->active) (void)EndContext(call, context);  // each retain still needs its release
  state->primary_flags = 0;
  return CUDA_SUCCESS;
}

CUresult api::DevicePrimaryCtxGetState(Call& call, CUdevice device, unsigned int* flags, int* active) {
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const DeviceState* const state = Device(call, device);
  if (state == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *flags = state->primary_flags;
  *active = state->primary->active ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult api::DevicePrimaryCtxSetFlags(Call& call, CUdevice device, unsigned int flags) {
  DeviceState* const state = Device(call, device);
  if (state == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  if ((flags & ~kPrimaryFlags) != 0 || (schedule != 0 && schedule != 1 && schedule != 2 && schedule != 4)) return CUDA_ERROR_INVALID_VALUE;
  state->primary_flags = flags;
  if (state->primary->active) state->primary->flags = flags;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
