// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/kernel/arguments.h"

namespace cuaudit::sim {
namespace {

const cuaudit_kernel* Newest(const cuaudit_kernel* first, const char* name) {
  for (const cuaudit_kernel* kernel = first; kernel != nullptr; kernel = kernel->next) {
    if (std::strcmp(kernel->name, name) == 0) return kernel;
  }
  return nullptr;
}

}  // namespace

const cuaudit_kernel* FindHostKernel(const World& world, const char* name) noexcept {
  for (std::size_t i = world.host_kernels.size(); i > 0; --i) {
    if (std::strcmp(world.host_kernels[i - 1]->name, name) == 0) return world.host_kernels[i - 1];
  }
  return world.process_kernels == nullptr ? nullptr : Newest(world.process_kernels->load(std::memory_order_acquire), name);
}

bool Agrees(const cuaudit_kernel& kernel, const Symbol& symbol) noexcept {
  if (kernel.parameters == nullptr) return symbol.parameters_known;
  if (!symbol.parameters_known) return true;
  if (kernel.parameter_count != symbol.parameters.size()) return false;
  for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
    if (kernel.parameters[i].bytes != symbol.parameters[i].size) return false;
  }
  return true;
}

}  // namespace cuaudit::sim
