// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/access.h"
#include "faults/sim/module.h"

namespace cuaudit::sim {
namespace {

const Symbol* SymbolOf(const World& world, const CUDA_KERNEL_NODE_PARAMS& kernel) {
  if (const Function* const function = world.Find<Function>(kernel.func); function != nullptr) return function->symbol;
  if (const Kernel* const named = world.Find<Kernel>(kernel.func); named != nullptr) return named->symbol;
  const Kernel* const given = world.Find<Kernel>(kernel.kern);
  return given == nullptr ? nullptr : given->symbol;
}

bool AddPointers(World& world, const char* bytes, std::size_t size, AccessList* list) {
  for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= size; at += sizeof(CUdeviceptr)) {
    CUdeviceptr value = 0;
    std::memcpy(&value, bytes + at, sizeof(value));
    const Range* const range = world.ranges.Find(value);
    if (range != nullptr && !list->Push(world.arena, Access{range->base, range->size, AccessMode::Use})) return false;
  }
  return true;
}

// The packed form: a list of tagged pointers, of which one is the buffer and one its size.
bool AddPacked(World& world, void* const* extra, AccessList* list) {
  const char* buffer = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[i + 1]);
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const std::size_t*>(extra[i + 1]);
  }
  return buffer == nullptr || AddPointers(world, buffer, size, list);
}

}  // namespace

bool ListKernelAccesses(World& world, const CUDA_KERNEL_NODE_PARAMS& kernel, AccessList* list) noexcept {
  if (kernel.extra != nullptr) return AddPacked(world, kernel.extra, list);
  const Symbol* const symbol = SymbolOf(world, kernel);
  if (symbol == nullptr || !symbol->parameters_known || kernel.kernelParams == nullptr) return true;
  for (std::size_t i = 0; i < symbol->parameters.size(); ++i) {
    const char* const bytes = static_cast<const char*>(kernel.kernelParams[i]);
    if (bytes != nullptr && !AddPointers(world, bytes, symbol->parameters[i].size, list)) return false;
  }
  return true;
}

}  // namespace cuaudit::sim
