// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/calls/context/named_context.h"
#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
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
