// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/kernel/arguments.h"
#include "faults/sim/operation/access.h"

namespace cuaudit::sim {
namespace {

// An integer parameter of up to eight bytes.
std::uint64_t Integer(const void* value, std::uint32_t bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, value, bytes < sizeof(number) ? bytes : sizeof(number));
  return number;
}

}  // namespace

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

bool ListDeclaredAccesses(World& world, const Work& work, AccessList* list) noexcept {
  const Arguments* const arguments = work.arguments;
  if (arguments == nullptr || arguments->host == nullptr || arguments->host->parameters == nullptr) return true;
  const cuaudit_kernel& kernel = *arguments->host;
  for (std::uint32_t i = 0; i < arguments->count && i < kernel.parameter_count; ++i) {
    const cuaudit_parameter& parameter = kernel.parameters[i];
    if (parameter.bytes != sizeof(std::uint64_t)) continue;
    const std::uint64_t address = Integer(arguments->pointers[i], parameter.bytes);
    const Range* const range = world.ranges.Find(address);
    if (range == nullptr) continue;
    if (arguments->by_host && !list->Push(world.arena, Access{range->base, range->size, AccessMode::Use})) return false;
    if (parameter.count_from == 0 || parameter.count_from > kernel.parameter_count) continue;
    const std::uint32_t counter = parameter.count_from - 1;
    const std::uint64_t count = Integer(arguments->pointers[counter], kernel.parameters[counter].bytes);
    const std::uint64_t left = range->size - (address - range->base);
    const std::uint64_t bytes = parameter.element != 0 && count > left / parameter.element ? left : count * parameter.element;
    if (bytes == 0) continue;
    if ((parameter.access & CUAUDIT_READS) != 0 && !list->Push(world.arena, Access{address, bytes, AccessMode::Read})) return false;
    if ((parameter.access & CUAUDIT_WRITES) != 0 && !list->Push(world.arena, Access{address, bytes, AccessMode::Write})) return false;
  }
  return true;
}

}  // namespace cuaudit::sim
