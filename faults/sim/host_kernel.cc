// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/host_kernel.h"

#include "faults/sim/conditional.h"
#include "faults/sim/executor.h"

namespace cuaudit::sim {
namespace {

// The argument of the host function. The public part is first, so that its callbacks find the rest.
struct Run {
  cuaudit_launch face;
  World* world;
  Plan* plan;
  bool illegal;
};

void* Translate(cuaudit_launch* launch, std::uint64_t address, std::uint64_t bytes, std::uint32_t) {
  Run* const run = reinterpret_cast<Run*>(launch);
  pthread_mutex_lock(&run->world->lock);
  const Range* const range = run->world->ranges.Find(address);
  const bool inside = range != nullptr && range->accessible && bytes <= range->size - (address - range->base);
  char* const found = inside ? range->bytes + (address - range->base) : nullptr;
  pthread_mutex_unlock(&run->world->lock);
  if (found == nullptr) run->illegal = true;
  return found;
}

int SetConditional(cuaudit_launch* launch, std::uint64_t handle, std::uint32_t value) {
  Run* const run = reinterpret_cast<Run*>(launch);
  pthread_mutex_lock(&run->world->lock);
  const bool set = run->plan != nullptr && SetConditionalValue(run->plan, handle, value);
  pthread_mutex_unlock(&run->world->lock);
  return set ? 1 : 0;
}

void Enter(void* argument) {
  Run* const run = static_cast<Run*>(argument);
  run->face.kernel->run(&run->face);
}

void Count(World& world, KernelCount what) {
  std::atomic<std::uint64_t>* const counts = world.kernel_counts;
  counts[static_cast<std::size_t>(what)].fetch_add(1, std::memory_order_relaxed);
}

// An integer parameter of up to eight bytes.
std::uint64_t Integer(const void* value, std::uint32_t bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, value, bytes < sizeof(number) ? bytes : sizeof(number));
  return number;
}

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

CUresult RunKernel(World& world, Thread* thread, const Work& work, Plan* plan) noexcept {
  const Arguments* const arguments = work.arguments;
  if (arguments == nullptr || arguments->host == nullptr) {
    Count(world, KernelCount::Idle);
    if (arguments != nullptr && arguments->mismatch) Count(world, KernelCount::Mismatched);
    return CUDA_SUCCESS;
  }
  const CUDA_KERNEL_NODE_PARAMS& kernel = work.kernel;
  Run run{};
  run.world = &world;
  run.plan = plan;
  run.face.struct_bytes = sizeof(run.face);
  const unsigned grid[] = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ};
  const unsigned block[] = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
  std::memcpy(run.face.grid, grid, sizeof(grid));
  std::memcpy(run.face.block, block, sizeof(block));
  run.face.shared_bytes = kernel.sharedMemBytes;
  run.face.parameter_count = arguments->count;
  run.face.parameters = arguments->pointers;
  run.face.kernel = arguments->host;
  run.face.translate = &Translate;
  run.face.set_conditional = &SetConditional;
  Count(world, KernelCount::Hosted);
  CallHost(world, thread, Inside::HostKernel, &Enter, &run);
  return run.illegal ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
