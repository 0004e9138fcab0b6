// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/calls/module/launch.h"
#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/stream/join.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kLastAttribute = 14;  // CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
constexpr unsigned kMostAttributes = 64;

CUDA_KERNEL_NODE_PARAMS Describe(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                 unsigned shared, void** parameters, void** extra) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.gridDimX = gx;
  kernel.gridDimY = gy;
  kernel.gridDimZ = gz;
  kernel.blockDimX = bx;
  kernel.blockDimY = by;
  kernel.blockDimZ = bz;
  kernel.sharedMemBytes = shared;
  kernel.kernelParams = parameters;
  kernel.extra = extra;
  return kernel;
}

// An event that the launch itself records: here with the kernel's end, which is the latest it may be.
CUresult RecordWith(Call& call, CUevent handle, CUstream stream_handle) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, stream_handle, &result);
  Event* const event = call.world.Find<Event>(handle);
  if (stream == nullptr || event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return stream->capture != nullptr ? CaptureRecord(call.world, stream, event) : RecordOn(call, stream, event);
}

// Only a node can be, so the stream must be captured.
bool MayBeUpdatable(Call& call, CUstream handle, int wanted) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  return wanted == 0 || (wanted == 1 && stream != nullptr && stream->capture != nullptr);
}

}  // namespace

CUresult api::LaunchKernel(Call& call, CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                           unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** parameters, void** extra) {
  return LaunchOn(call, Describe(function, gx, gy, gz, bx, by, bz, shared, parameters, extra), stream, false);
}

CUresult api::LaunchCooperativeKernel(Call& call, CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                                      unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void** parameters) {
  return LaunchOn(call, Describe(function, gx, gy, gz, bx, by, bz, shared, parameters, nullptr), stream, true);
}

// On one device. Several would have to wait for each other.
CUresult api::LaunchCooperativeKernelMultiDevice(Call& call, CUDA_LAUNCH_PARAMS* list, unsigned int count, unsigned int flags) {
  constexpr unsigned kKnown =
      CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC | CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
  if (list == nullptr || count == 0 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (count != 1) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, list->hStream, &result);
  if (stream == nullptr) return result;
  if (stream->legacy) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return RefuseLaunch(call, list->hStream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return LaunchOn(call,
                  Describe(list->function, list->gridDimX, list->gridDimY, list->gridDimZ, list->blockDimX, list->blockDimY,
                           list->blockDimZ, list->sharedMemBytes, list->kernelParams, nullptr),
                  list->hStream, true);
}

CUresult api::LaunchKernelEx(Call& call, const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  if (config == nullptr || config->numAttrs > kMostAttributes || (config->numAttrs != 0 && config->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult found = CUDA_SUCCESS;
  if (call.context == nullptr && FindStream(call, config->hStream, &found) == nullptr) return found;
  const CUDA_KERNEL_NODE_PARAMS kernel = Describe(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                                  config->blockDimY, config->blockDimZ, config->sharedMemBytes, parameters, extra);
  bool cooperative = false;
  CUevent event = nullptr;
  CUlaunchAttributeValue* updatable = nullptr;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    CUlaunchAttribute& attribute = config->attrs[i];
    const unsigned id = static_cast<unsigned>(attribute.id);
    if (id > kLastAttribute) return RefuseLaunch(call, config->hStream, CUDA_ERROR_INVALID_VALUE);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) cooperative = attribute.value.cooperative != 0;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) event = attribute.value.programmaticEvent.event;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) updatable = &attribute.value;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const CUresult result = CheckCluster(call, kernel, attribute.value);
      if (result != CUDA_SUCCESS) return RefuseLaunch(call, config->hStream, result);
    }
  }
  if (event != nullptr && call.world.Find<Event>(event) == nullptr) return RefuseLaunch(call, config->hStream, CUDA_ERROR_INVALID_HANDLE);
  if (updatable != nullptr && !MayBeUpdatable(call, config->hStream, updatable->deviceUpdatableKernelNode.deviceUpdatable)) {
    return RefuseLaunch(call, config->hStream, CUDA_ERROR_INVALID_VALUE);
  }
  CUresult result = LaunchOn(call, kernel, config->hStream, cooperative);
  if (result == CUDA_SUCCESS && updatable != nullptr) {
    const Stream* const stream = FindStream(call, config->hStream, &result);
    if (stream->capture != nullptr) result = SetUpdatable(stream->capture_tips[0], updatable);
  }
  return result != CUDA_SUCCESS || event == nullptr ? result : RecordWith(call, event, config->hStream);
}

}  // namespace cuaudit::sim
