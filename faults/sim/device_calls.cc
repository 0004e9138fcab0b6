// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/call.h"
#include "faults/sim/device_attributes.h"

namespace cuaudit::sim {
namespace {

constexpr int kDriverVersion = 13000;
bool IsDevice(const World& world, CUdevice device) { return device >= 0 && device < world.device_count; }

std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
  return x ^ (x >> 33);
}

constexpr char kLower[] = "abcdefghijklmnopqrstuvwxyz";
constexpr std::size_t kTextBytes = 64;

struct ErrorText {
  CUresult code;
  const char* name;
  char text[kTextBytes];
};

// "CUDA_ERROR_OUT_OF_MEMORY" reads "out of memory".
constexpr ErrorText MakeText(const char* name, int code) {
  ErrorText made{static_cast<CUresult>(code), name, {}};
  const char prefix[] = "CUDA_ERROR_";
  std::size_t skip = 0;
  while (prefix[skip] != '\0' && name[skip] == prefix[skip]) ++skip;
  const char* from = prefix[skip] == '\0' ? name + skip : name + 5;
  for (std::size_t i = 0; from[i] != '\0' && i + 1 < kTextBytes; ++i) {
    const char c = from[i];
    made.text[i] = c == '_' ? ' ' : (c >= 'A' && c <= 'Z' ? kLower[c - 'A'] : c);
  }
  return made;
}

constexpr ErrorText kErrors[] = {
#define CUAUDIT_RESULT(name, value) MakeText(#name, value),
#include "driver_results.inc"
#undef CUAUDIT_RESULT
};

const ErrorText* FindError(CUresult code) {
  for (const ErrorText& row : kErrors) {
    if (row.code == code) return &row;
  }
  return nullptr;
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

CUresult api::GetErrorName(Call&, CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = FindError(error);
  *text = row == nullptr ? nullptr : row->name;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult api::GetErrorString(Call&, CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorText* const row = FindError(error);
  *text = row == nullptr ? nullptr : row->text;
  return row == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
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
  if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? device + 1 : DeviceAttribute(attribute);
  return CUDA_SUCCESS;
}

CUresult api::DeviceComputeCapability(Call& call, int* major, int* minor, CUdevice device) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *major = DeviceAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = DeviceAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetProperties(Call& call, CUdevprop* properties, CUdevice device) {
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *properties = {};
  properties->maxThreadsPerBlock = DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int i = 0; i < 3; ++i) {
    properties->maxThreadsDim[i] = DeviceAttribute(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i));
    properties->maxGridSize[i] = DeviceAttribute(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i));
  }
  properties->sharedMemPerBlock = DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  properties->totalConstantMemory = DeviceAttribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  properties->SIMDWidth = DeviceAttribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  properties->memPitch = DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  properties->regsPerBlock = DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  properties->clockRate = DeviceAttribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  properties->textureAlign = DeviceAttribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetPCIBusId(Call& call, char* text, int length, CUdevice device) {
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  char bus[] = "0000:01:00.0";
  bus[6] = static_cast<char>('1' + device);
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
  return CUDA_ERROR_INVALID_DEVICE;
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

CUresult api::DeviceGetExecAffinitySupport(Call& call, int* value, CUexecAffinityType type, CUdevice device) {
  if (value == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult api::DeviceGetTexture1DLinearMaxWidth(Call& call, std::size_t* width, CUarray_format, unsigned int channels, CUdevice device) {
  if (width == nullptr || channels == 0 || channels > 4) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(call.world, device)) return CUDA_ERROR_INVALID_DEVICE;
  *width = std::size_t{1} << 28;
  return CUDA_SUCCESS;
}

CUresult api::ProfilerStart(Call&) { return CUDA_SUCCESS; }
CUresult api::ProfilerStop(Call&) { return CUDA_SUCCESS; }

}  // namespace cuaudit::sim
