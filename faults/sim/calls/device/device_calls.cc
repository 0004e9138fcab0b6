// SPDX-License-Identifier: MIT
// What devices there are and can do; the profiler, peer access, and checkpoints of processes.
#define __CUDA_API_VERSION_INTERNAL
#include <signal.h>

#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
namespace {

constexpr int kDriverVersion = 13000;
bool IsDevice(const World& world, CUdevice device) { return device >= 0 && device < world.device_count; }

std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33);
}

// 0: not a format of linear memory.
std::size_t BytesOfFormat(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

CUresult CopyText(char* out, int length, const char* text) {
  if (out == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  int i = 0;
  for (; i + 1 < length && text[i] != '\0'; ++i) out[i] = text[i];
  out[i] = '\0';
  return CUDA_SUCCESS;
}

}  // namespace

CUresult api::Init(Call& call, unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  call.world.initialized = true;
  return CUDA_SUCCESS;
}

CUresult api::DriverGetVersion(Call&, int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetCount(Call& call, int* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = call.world.device_count;
  return CUDA_SUCCESS;
}

CUresult api::DeviceGet(Call& call, CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetName(Call& call, char* name, int length, CUdevice device) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  return CopyText(name, length, call.world.device_name);
}

CUresult api::DeviceGetUuid(Call& call, CUuuid* uuid, CUdevice device) {
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  const std::uint64_t words[2] = {Mix(call.world.seed), Mix(call.world.seed * 31 + static_cast<std::uint64_t>(device) + 1)};
  static_assert(sizeof(words) == sizeof(uuid->bytes));
  std::memcpy(uuid->bytes, words, sizeof(words));
  return CUDA_SUCCESS;
}

CUresult api::DeviceTotalMem(Call& call, std::size_t* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = call.world.devices[device].total;
  return CUDA_SUCCESS;
}

CUresult api::DeviceTotalMem(Call& call, unsigned int* bytes, CUdevice device) {
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  const std::uint64_t total = call.world.devices[device].total;
  *bytes = total > 0xffffffffU ? 0xffffffffU : static_cast<unsigned int>(total);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetAttribute(Call& call, int* value, CUdevice_attribute attribute, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < 1 || attribute >= kAttributeEnd) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : call.world.profile->Attribute(attribute);
  return CUDA_SUCCESS;
}

CUresult api::DeviceComputeCapability(Call& call, int* major, int* minor, CUdevice device) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *major = call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetProperties(Call& call, CUdevprop* properties, CUdevice device) {
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  const Profile& profile = *call.world.profile;
  *properties = {};
  properties->maxThreadsPerBlock = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    properties->maxGridSize[i] = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  properties->sharedMemPerBlock = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = profile.Attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = profile.Attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = profile.Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = profile.Attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = profile.Attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetPCIBusId(Call& call, char* text, int length, CUdevice device) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  char bus[] = "0000:01:00.0";
  bus[6] = static_cast<char>('1' + device);
  if (length < static_cast<int>(sizeof(bus))) return CUDA_ERROR_INVALID_VALUE;
  return CopyText(text, length, bus);
}

CUresult api::DeviceGetByPCIBusId(Call& call, CUdevice* device, const char* text) {
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  char bus[] = "0000:01:00.0";
  for (int i = 0; i < call.world.device_count; ++i) {
    bus[6] = static_cast<char>('1' + i);
    if (std::strcmp(text, bus) != 0 && std::strcmp(text, bus + 5) != 0) continue;
    *device = i;
    return CUDA_SUCCESS;
  }
  // Nobody's place, or no place at all.
  const bool place = std::strchr(text, ':') != nullptr && text[std::strspn(text, "0123456789abcdefABCDEF:.")] == 0;
  return place ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
}

CUresult api::DeviceCanAccessPeer(Call& call, int* can, CUdevice device, CUdevice peer) {
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device) || !IsDevice(call.world, peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetP2PAttribute(Call& call, int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  if (value == nullptr || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device) || !IsDevice(call.world, peer) || device == peer) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetExecAffinitySupport(Call& call, int* value, CUexecAffinityType, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;  // of no type: only clients of an MPS server are given a part of a device
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetTexture1DLinearMaxWidth(Call& call, std::size_t* width, CUarray_format format, unsigned int channels,
                                               CUdevice device) {
  const std::size_t element = BytesOfFormat(format) * channels;
  if (width == nullptr || element == 0 || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  constexpr std::size_t kMostElements = std::size_t{1} << 30;
  constexpr std::size_t kMostBytes = std::size_t{1} << 32;
  *width = kMostBytes / element < kMostElements ? kMostBytes / element : kMostElements;
  return CUDA_SUCCESS;
}

CUresult api::ProfilerStart(Call&) { return CUDA_SUCCESS; }
CUresult api::ProfilerStop(Call&) { return CUDA_SUCCESS; }

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
  if (!call.context->peers.Push(call.world.arena, peer->handle)) return CUDA_ERROR_OUT_OF_MEMORY;
  call.world.Count(driver::Kind::PeerAccess, 1);
  return CUDA_SUCCESS;
}

CUresult api::CtxDisablePeerAccess(Call& call, CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Context* peer = nullptr;
  const CUresult result = PeerOf(call, handle, &peer);
  if (result != CUDA_SUCCESS) return result;
  if (!call.context->peers.EraseValue(peer->handle)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  call.world.Count(driver::Kind::PeerAccess, -1);
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim

// Arguments are checked and nothing is done: a locked process's calls would block, and its memory would move to the host.
#ifdef CUAUDIT_HAS_CheckpointProcessGetState
namespace cuaudit::sim {
namespace {

CUresult OfProcess(int process) { return process <= 0 || kill(process, 0) != 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_NOT_SUPPORTED; }

CUresult OfProcess(int process, const void* out) { return out == nullptr ? CUDA_ERROR_INVALID_VALUE : OfProcess(process); }

}  // namespace

CUresult api::CheckpointProcessGetState(Call&, int process, CUprocessState* state) { return OfProcess(process, state); }

CUresult api::CheckpointProcessGetRestoreThreadId(Call&, int process, int* thread) { return OfProcess(process, thread); }

CUresult api::CheckpointProcessLock(Call&, int process, CUcheckpointLockArgs*) { return OfProcess(process); }

CUresult api::CheckpointProcessCheckpoint(Call&, int process, CUcheckpointCheckpointArgs*) { return OfProcess(process); }

CUresult api::CheckpointProcessRestore(Call&, int process, CUcheckpointRestoreArgs*) { return OfProcess(process); }

CUresult api::CheckpointProcessUnlock(Call&, int process, CUcheckpointUnlockArgs*) { return OfProcess(process); }

}  // namespace cuaudit::sim
#endif
