// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/access.h"
#include "faults/sim/arguments.h"
#include "faults/sim/module.h"

namespace cuaudit::sim {

bool ListKernelAccesses(World& world, const CUDA_KERNEL_NODE_PARAMS& kernel, AccessList* list) noexcept {
  const Symbol* const symbol = KernelSymbol(world, kernel);
  if (symbol == nullptr || !symbol->parameters_known || kernel.kernelParams == nullptr) return true;
  for (std::size_t i = 0; i < symbol->parameters.size(); ++i) {
    if (symbol->parameters[i].size != sizeof(CUdeviceptr) || kernel.kernelParams[i] == nullptr) continue;
    CUdeviceptr value = 0;
    std::memcpy(&value, kernel.kernelParams[i], sizeof(value));
    const Range* const range = world.ranges.Find(value);
    if (range != nullptr && !list->Push(world.arena, Access{range->base, range->size, AccessMode::Use})) return false;
  }
  return true;
}

}  // namespace cuaudit::sim
