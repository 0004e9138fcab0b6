// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/call.h"
#include "faults/sim/capture.h"
#include "faults/sim/context.h"
#include "faults/sim/executor.h"
#include "faults/sim/memory.h"

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
    EndContext(call, context);
    world.Destroy(context);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  context->flags = flags;
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
  if (handle == nullptr) return CurrentContext(call.world, call.thread, context);
  *context = Named(call, handle);
  return *context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

// The limits of shared memory for graphics are known and unsupported; beyond them lies no limit.
bool HasLimit(CUlimit limit, CUresult* result) {
  constexpr int kKept = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1;
  if (limit >= 0 && limit < kKept) return true;
  *result = limit >= 0 && limit < CU_LIMIT_MAX ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_ERROR_INVALID_VALUE;
  return false;
}

void PopEntry(Call& call) {
  call.thread->stack.Truncate(call.thread->stack.size() - 1);
  call.world.Count(Kind::ContextStackEntry, -1);
}

}  // namespace

CUresult api::CtxCreate(Call& call, CUcontext* out, unsigned int flags, CUdevice device) { return Create(call, out, flags, device, 3020); }

CUresult api::CtxCreate_v3(Call& call, CUcontext* out, CUexecAffinityParam* parameters, int count, unsigned int flags, CUdevice device) {
  if (count < 0 || (count > 0 && parameters == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (count > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return Create(call, out, flags, device, 3020);
}

#ifdef CUAUDIT_HAS_CtxCreate_v4
CUresult api::CtxCreate_v4(Call& call, CUcontext* out, CUctxCreateParams* parameters, unsigned int flags, CUdevice device) {
  if (parameters != nullptr && parameters->numExecAffinityParams != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return Create(call, out, flags, device, 3020);
}
#endif

CUresult api::CtxDestroy(Call& call, CUcontext handle) {
  World& world = call.world;
  Context* const context = Named(call, handle);
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) return world.IsStale(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  EndContext(call, context);
  // Destroying the current context pops it; elsewhere it stays current and answers CONTEXT_IS_DESTROYED.
  if (!call.thread->stack.empty() && call.thread->stack[call.thread->stack.size() - 1] == context->handle) PopEntry(call);
  context->streams.Clear(world.arena);
  world.Destroy(context);
  return CUDA_SUCCESS;
}

CUresult api::CtxAttach(Call& call, CUcontext* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = ToHandle<CUcontext>(call.context);
  return CUDA_SUCCESS;
}

CUresult api::CtxPushCurrent(Call& call, CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* const context = call.world.Find<Context>(handle);  // also a primary one that nobody retains: calls in it are refused
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return Push(call, context->handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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
  *flags = call.context->flags;
  return CUDA_SUCCESS;
}

CUresult api::CtxSetFlags(Call& call, unsigned int flags) {
  if (!FlagsAreLegal(flags)) return CUDA_ERROR_INVALID_VALUE;
  call.context->flags = flags;
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

CUresult api::CtxGetLimit(Call& call, std::size_t* value, CUlimit limit) {
  CUresult result = CUDA_SUCCESS;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr int kSharedMemory = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 1;  // can only be queried
  if ((limit != kSharedMemory || limit >= CU_LIMIT_MAX) && !HasLimit(limit, &result)) return result;
  *value = call.context->limits[limit];
  return CUDA_SUCCESS;
}

CUresult api::CtxSetLimit(Call& call, CUlimit limit, std::size_t value) {
  CUresult result = CUDA_SUCCESS;
  if (!HasLimit(limit, &result)) return result;
  call.context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult api::CtxGetStreamPriorityRange(Call&, int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult api::CtxSynchronize(Call& call) {
  if (call.world.captures != 0) {
    for (const Stream* stream : call.context->streams) {
      if (stream->capture == nullptr) continue;
      Invalidate(stream->capture);
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  DrainContext(call, call.context);
  TrimPools(call.world);
  return call.context->sticky;
}

#ifdef CUAUDIT_HAS_CtxSynchronize_v2
CUresult api::CtxSynchronize_v2(Call& call, CUcontext handle) {
  const CUresult result = NamedOrCurrent(call, handle, &call.context);
  return result == CUDA_SUCCESS ? CtxSynchronize(call) : result;
}
#endif

CUresult api::CtxGetCacheConfig(Call& call, CUfunc_cache* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = call.context->cache;
  return CUDA_SUCCESS;
}

CUresult api::CtxSetCacheConfig(Call& call, CUfunc_cache config) {
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  call.context->cache = config;
  return CUDA_SUCCESS;
}

CUresult api::CtxGetSharedMemConfig(Call& call, CUsharedconfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = call.context->banks;
  return CUDA_SUCCESS;
}

CUresult api::CtxSetSharedMemConfig(Call& call, CUsharedconfig config) {
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
    return CUDA_ERROR_INVALID_VALUE;
  call.context->banks = config;
  return CUDA_SUCCESS;
}

CUresult api::CtxResetPersistingL2Cache(Call&) { return CUDA_SUCCESS; }

CUresult api::CtxEnablePeerAccess(Call& call, CUcontext peer, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Context* const other = Named(call, peer);
  if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return other->device == call.context->device ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult api::CtxDisablePeerAccess(Call& call, CUcontext peer) {
  const Context* const other = Named(call, peer);
  if (other == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return other->device == call.context->device ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
