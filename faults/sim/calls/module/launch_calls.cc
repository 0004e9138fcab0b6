// SPDX-License-Identifier: MIT
// Launches, also in the form of CUDA 3.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/entry/entry.h"
#include "faults/sim/graph/capture.h"
#include "faults/sim/graph/node.h"
#include "faults/sim/kernel/launch.h"
#include "faults/sim/kernel/module.h"
#include "faults/sim/stream/stream.h"

namespace cuaudit::sim {
namespace {

// Refuses the launch for `reason`. That ends the capture of its stream (suites/contract, runtime_fact.refused_launch_while_capturing).
CUresult RefuseLaunch(Call& call, CUstream handle, CUresult reason) {
  CUresult result = CUDA_SUCCESS;
  const Stream* const stream = FindStream(call, handle, &result);
  if (stream != nullptr && stream->capture != nullptr) Invalidate(stream->capture);
  return reason;
}

// Queues the launch, or captures it.
CUresult LaunchOn(Call& call, const CUDA_KERNEL_NODE_PARAMS& kernel, CUstream handle, bool cooperative) {
  CUresult result = CUDA_SUCCESS;
  Stream* const stream = FindStream(call, handle, &result);
  if (stream == nullptr) return result;
  call.context = stream->owner;  // a kernel of a library has a function there
  result = CheckKernel(call, kernel, stream->owner);
  if (result == CUDA_SUCCESS && cooperative) result = CheckCooperative(call, kernel);
  if (result != CUDA_SUCCESS) return RefuseLaunch(call, handle, result);
  Work work;
  work.type = WorkType::Kernel;
  work.kernel = kernel;
  if (call.world.Find<Kernel>(kernel.func) != nullptr) {  // the node has both
    work.kernel.kern = reinterpret_cast<CUkernel>(kernel.func);
    work.kernel.func = ToHandle<CUfunction>(FindLaunched(call, kernel.func, &result));
  }
  work.cooperative = cooperative;
  if (!CopyArguments(call.world, KernelSymbol(call.world, kernel), &work)) return CUDA_ERROR_OUT_OF_MEMORY;
  result = Submit(call, stream, CU_GRAPH_NODE_TYPE_KERNEL, work);
  DropArguments(call.world, work);
  return result;
}

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
  Event* const event = call.Follow<Event>(handle);
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
  if (event != nullptr && call.Follow<Event>(event) == nullptr) return RefuseLaunch(call, config->hStream, CUDA_ERROR_INVALID_HANDLE);
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

namespace {

constexpr int kParameterBytes = kLegacyParameterBytes;

// The function, which must be one of the current context.
Function* Find(Call& call, CUfunction handle, CUresult* result) {
  Function* const function = FindFunction(call, handle, result);
  if (function == nullptr || function->module->owner == call.context) return function;
  *result = CUDA_ERROR_INVALID_HANDLE;
  return nullptr;
}

CUresult SetBytes(Call& call, CUfunction handle, int offset, const void* value, unsigned bytes) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (value == nullptr || offset < 0 || offset > kParameterBytes || bytes > static_cast<unsigned>(kParameterBytes - offset)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (function->parameters == nullptr) function->parameters = static_cast<char*>(call.world.arena.Allocate(kParameterBytes));
  if (function->parameters == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(function->parameters + offset, value, bytes);
  return CUDA_SUCCESS;
}

CUresult Start(Call& call, CUfunction handle, int width, int height, CUstream stream) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::size_t bytes = function->parameter_bytes;
  const char nothing = 0;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, function->parameters == nullptr ? const_cast<char*>(&nothing) : function->parameters,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  if (function->parameters == nullptr) bytes = 0;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = handle;
  kernel.gridDimX = static_cast<unsigned>(width);
  kernel.gridDimY = static_cast<unsigned>(height);
  kernel.gridDimZ = 1;
  kernel.blockDimX = static_cast<unsigned>(function->block[0]);
  kernel.blockDimY = static_cast<unsigned>(function->block[1]);
  kernel.blockDimZ = static_cast<unsigned>(function->block[2]);
  kernel.sharedMemBytes = function->launch_shared;
  kernel.extra = extra;
  return LaunchOn(call, kernel, stream, false);
}

}  // namespace

CUresult api::FuncSetBlockShape(Call& call, CUfunction handle, int x, int y, int z) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  const Profile& profile = *call.world.profile;
  const int shape[3] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    if (shape[i] <= 0 || shape[i] > profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (std::int64_t{x} * y * z > std::int64_t{function->symbol->max_threads}) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; ++i) function->block[i] = shape[i];
  return CUDA_SUCCESS;
}

CUresult api::FuncSetSharedSize(Call& call, CUfunction handle, unsigned int bytes) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (bytes > DynamicSharedLimit(*call.world.profile, function->symbol, *function)) return CUDA_ERROR_INVALID_VALUE;
  function->launch_shared = bytes;
  return CUDA_SUCCESS;
}

CUresult api::ParamSetSize(Call& call, CUfunction handle, unsigned int bytes) {
  CUresult result = CUDA_SUCCESS;
  Function* const function = Find(call, handle, &result);
  if (function == nullptr) return result;
  if (bytes > kParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  function->parameter_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult api::ParamSeti(Call& call, CUfunction handle, int offset, unsigned int value) {
  return SetBytes(call, handle, offset, &value, sizeof(value));
}

CUresult api::ParamSetf(Call& call, CUfunction handle, int offset, float value) {
  return SetBytes(call, handle, offset, &value, sizeof(value));
}

CUresult api::ParamSetv(Call& call, CUfunction handle, int offset, void* value, unsigned int bytes) {
  return SetBytes(call, handle, offset, value, bytes);
}

// Kernels read no textures here, so nothing depends on which reference they were given.
CUresult api::ParamSetTexRef(Call& call, CUfunction handle, int unit, CUtexref reference) {
  CUresult result = CUDA_SUCCESS;
  if (Find(call, handle, &result) == nullptr) return result;
  if (unit != CU_PARAM_TR_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  return call.Follow<TextureReference>(reference) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult api::Launch(Call& call, CUfunction function) { return Start(call, function, 1, 1, nullptr); }
CUresult api::LaunchGrid(Call& call, CUfunction function, int width, int height) { return Start(call, function, width, height, nullptr); }
CUresult api::LaunchGridAsync(Call& call, CUfunction function, int width, int height, CUstream stream) {
  return Start(call, function, width, height, stream);
}

}  // namespace cuaudit::sim
