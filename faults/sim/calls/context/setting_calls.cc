// SPDX-License-Identifier: MIT
// Settings of a context, core dumps, and GPUDirect flushes.
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/context/context.h"
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
namespace {

// How an H200 (580.159.04) rounds what it is asked for.
constexpr std::size_t kStackUnit = 16;
constexpr std::size_t kStackEnd = 524288;
constexpr std::size_t kLeastFifo = 524288;
constexpr std::size_t kLeastHeap = 4194304;
constexpr std::size_t kHeapUnit = 65536;
constexpr std::size_t kLeastLaunches = 32;
constexpr std::size_t kMostFetch = 128;

constexpr std::size_t Up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }
constexpr std::size_t Most(std::size_t a, std::size_t b) { return a > b ? a : b; }

enum class Access : std::uint8_t { None, Unsupported, Query, Full };

// Toolkits before 12.5 have no name for the limits of graphics contexts.
constexpr int kGraphicsContext = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 2;
constexpr int kGraphicsFallback = CU_LIMIT_PERSISTING_L2_CACHE_SIZE + 3;

Access AccessTo(const World& world, int limit) {
  if (limit < 0 || limit > kGraphicsFallback) return Access::None;
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == kGraphicsFallback) return Access::Unsupported;
  if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE && MostPersisting(world) == 0) return Access::Unsupported;
  return limit == kSharedMemory || limit == kGraphicsContext ? Access::Query : Access::Full;
}

CUresult Refusal(Access access) {
  if (access == Access::None) return CUDA_ERROR_INVALID_VALUE;
  return access == Access::Unsupported ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_ERROR_NOT_PERMITTED;
}

// A heap and a buffer of a PiB are granted, since nobody has used them yet; more, which the reference would refuse, was not asked for.
constexpr std::size_t kMostGranted = std::size_t{1} << 50;

CUresult Grant(const Call& call, int limit, std::size_t* value) {
  const World& world = call.world;
  const std::size_t now = call.context->limits[limit];
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      if (*value >= kStackEnd) return CUDA_ERROR_INVALID_VALUE;
      if (Up(*value, kStackUnit) != Up(now, kStackUnit)) *value = Up(*value, kStackUnit);
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      if (*value > kMostGranted) return CUDA_ERROR_OUT_OF_MEMORY;
      *value = Most(*value, kLeastFifo);
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      if (*value > kMostGranted) return CUDA_ERROR_OUT_OF_MEMORY;
      *value = Most(Up(*value, kHeapUnit), kLeastHeap);
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      *value = Most(*value, kLeastLaunches);
      return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return *value <= kMostFetch ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      if (*value > MostPersisting(world)) return CUDA_ERROR_INVALID_VALUE;
      *value = Up(*value, MostPersisting(world) / kPersistingParts);
      return CUDA_SUCCESS;
  }
}

}  // namespace

CUresult api::CtxGetLimit(Call& call, std::size_t* value, CUlimit limit) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Access access = AccessTo(call.world, limit);
  if (access < Access::Query) return Refusal(access);
  *value = call.context->limits[limit];
  return CUDA_SUCCESS;
}

CUresult api::CtxSetLimit(Call& call, CUlimit limit, std::size_t value) {
  const Access access = AccessTo(call.world, limit);
  if (access != Access::Full) return Refusal(access);
  if (const CUresult result = Grant(call, limit, &value); result != CUDA_SUCCESS) return result;
  call.context->limits[limit] = value;
  return CUDA_SUCCESS;
}

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

// Banks are four bytes wide on every device of today, whatever is asked for.
CUresult api::CtxGetSharedMemConfig(Call&, CUsharedconfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

CUresult api::CtxSetSharedMemConfig(Call&, CUsharedconfig config) {
  const bool known = config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult api::CtxResetPersistingL2Cache(Call&) { return CUDA_SUCCESS; }

CUresult api::CtxGetExecAffinity(Call& call, CUexecAffinityParam* affinity, CUexecAffinityType type) {
  if (affinity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  affinity->type = type;
  affinity->param.smCount.val = WholeDevice(call.world, call.context->device).sm.smCount;
  return CUDA_SUCCESS;
}

CUresult api::FlushGPUDirectRDMAWrites(Call& call, CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
  if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX) return CUDA_ERROR_INVALID_VALUE;
  if (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER && scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES)
    return CUDA_ERROR_INVALID_VALUE;
  constexpr int kByHost = CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
  const int options = call.world.profile->Attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
  return (options & kByHost) != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

namespace {

// Toolkits before 12.5 have no names for these.
constexpr int kGenerationFlags = 7;
constexpr int kLightweightFlags = 47;
constexpr int kSkipAbort = 16;
constexpr int kKnownFlags = 63;

std::size_t SizeOf(int setting) {
  switch (setting) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      return sizeof(bool);
    case CU_COREDUMP_FILE:
    case CU_COREDUMP_PIPE:
      return kCoredumpName;
    case kGenerationFlags:
      return sizeof(int);
    default:
      return 0;
  }
}

bool IsName(int setting) { return setting == CU_COREDUMP_FILE || setting == CU_COREDUMP_PIPE; }
bool IsOfTheProcess(int setting) { return setting == CU_COREDUMP_ENABLE_USER_TRIGGER || setting == CU_COREDUMP_PIPE; }

bool Flag(const Coredump& dump, int setting) {
  switch (setting) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
      return dump.on_exception;
    case CU_COREDUMP_TRIGGER_HOST:
      return (dump.flags & kSkipAbort) == 0;
    case CU_COREDUMP_LIGHTWEIGHT:
      return (dump.flags & kLightweightFlags) == kLightweightFlags;
    default:
      return dump.user_trigger;
  }
}

void SetFlag(Coredump* dump, int setting, bool on) {
  switch (setting) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
      dump->on_exception = on;
      return;
    case CU_COREDUMP_TRIGGER_HOST:
      dump->flags = on ? dump->flags & ~kSkipAbort : dump->flags | kSkipAbort;
      return;
    case CU_COREDUMP_LIGHTWEIGHT:
      dump->flags = on ? dump->flags | kLightweightFlags : dump->flags & ~kLightweightFlags;
      return;
    default:
      dump->user_trigger = on;
  }
}

// Without a value only its size is answered. *done: nothing is left to do.
CUresult CheckSize(int setting, const void* value, std::size_t* size, bool* done) {
  const std::size_t wanted = SizeOf(setting);
  *done = value == nullptr;
  if (wanted == 0 || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (*done) {
    *size = wanted;
    return CUDA_SUCCESS;
  }
  return IsName(setting) || *size == wanted ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Get(const Coredump& dump, int setting, void* value, std::size_t* size) {
  bool done = false;
  const CUresult result = CheckSize(setting, value, size, &done);
  if (result != CUDA_SUCCESS || done) return result;
  if (IsName(setting)) {
    const char* const name = setting == CU_COREDUMP_FILE ? dump.file : dump.pipe;
    if (*size < std::strlen(name) + 1) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, name, std::strlen(name) + 1);
  } else if (setting == kGenerationFlags) {
    std::memcpy(value, &dump.flags, sizeof(dump.flags));
  } else {
    const bool on = Flag(dump, setting);
    std::memcpy(value, &on, sizeof(on));
  }
  return CUDA_SUCCESS;
}

CUresult Set(Coredump* dump, int setting, const void* value, std::size_t* size) {
  bool done = false;
  const CUresult result = CheckSize(setting, value, size, &done);
  if (result != CUDA_SUCCESS || done) return result;
  if (IsName(setting)) {
    if (*size == 0 || *size > kCoredumpName) return CUDA_ERROR_INVALID_VALUE;
    char* const name = setting == CU_COREDUMP_FILE ? dump->file : dump->pipe;
    std::memcpy(name, value, *size);
    name[*size - 1] = '\0';
  } else if (setting == kGenerationFlags) {
    int flags = 0;
    std::memcpy(&flags, value, sizeof(flags));
    if ((flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    dump->flags = flags;
  } else {
    bool on = false;
    std::memcpy(&on, value, sizeof(on));
    SetFlag(dump, setting, on);
  }
  return CUDA_SUCCESS;
}

// Made when first asked for: most programs never do.
Coredump* GlobalCoredump(World& world) {
  if (world.coredump == nullptr) world.coredump = world.arena.New<Coredump>();
  return world.coredump;
}

Coredump* Own(World& world, Context* context) {
  const Coredump* const global = GlobalCoredump(world);
  if (context->coredump == nullptr && global != nullptr) {
    context->coredump = world.arena.New<Coredump>();
    if (context->coredump != nullptr) *context->coredump = *global;
  }
  return context->coredump;
}

}  // namespace

CUresult api::CoredumpGetAttributeGlobal(Call& call, CUcoredumpSettings setting, void* value, std::size_t* size) {
  const Coredump* const dump = GlobalCoredump(call.world);
  return dump == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : Get(*dump, setting, value, size);
}

CUresult api::CoredumpSetAttributeGlobal(Call& call, CUcoredumpSettings setting, void* value, std::size_t* size) {
  Coredump* const dump = GlobalCoredump(call.world);
  return dump == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : Set(dump, setting, value, size);
}

CUresult api::CoredumpGetAttribute(Call& call, CUcoredumpSettings setting, void* value, std::size_t* size) {
  if (IsOfTheProcess(setting)) return CUDA_ERROR_INVALID_VALUE;
  const Coredump* const dump = Own(call.world, call.context);
  return dump == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : Get(*dump, setting, value, size);
}

CUresult api::CoredumpSetAttribute(Call& call, CUcoredumpSettings setting, void* value, std::size_t* size) {
  if (IsOfTheProcess(setting)) return CUDA_ERROR_INVALID_VALUE;
  Coredump* const dump = Own(call.world, call.context);
  return dump == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : Set(dump, setting, value, size);
}

}  // namespace cuaudit::sim
