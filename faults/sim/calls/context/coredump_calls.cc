// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/context/coredump.h"
#include "faults/sim/entry/entry.h"

namespace cuaudit::sim {
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
