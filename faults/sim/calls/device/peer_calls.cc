// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
namespace {

CUresult PeerOf(const Call& call, CUcontext handle, Context** peer) {
  *peer = call.world.Find<Context>(handle);
  if (*peer != nullptr && (*peer)->active) return CUDA_SUCCESS;
  return *peer != nullptr || call.world.IsStale(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

CUresult api::CtxEnablePeerAccess(Call& call, CUcontext handle, unsigned int flags) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Context* peer = nullptr;
  const CUresult result = PeerOf(call, handle, &peer);
  if (result != CUDA_SUCCESS) return result;
  if (peer->device == call.context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (call.context->peers.Contains(peer->handle)) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  return call.context->peers.Push(call.world.arena, peer->handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult api::CtxDisablePeerAccess(Call& call, CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Context* peer = nullptr;
  const CUresult result = PeerOf(call, handle, &peer);
  if (result != CUDA_SUCCESS) return result;
  return call.context->peers.EraseValue(peer->handle) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace cuaudit::sim
