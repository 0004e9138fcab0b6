// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/oracle/attendance.h"

#include "faults/sim/graph/plan.h"
#include "faults/sim/kernel/arguments.h"

namespace cuaudit::sim {
namespace {

bool IsHostVisible(const World& world, std::uint64_t address) {
  const Range* const range = world.ranges.Find(address);
  return range != nullptr && range->host_visible;
}

// True for a kernel with such a pointer argument, whether or not a host function stands for it.
bool UsesHost(const World& world, const Work& work) {
  const Arguments* const arguments = work.arguments;
  const Symbol* const symbol = arguments == nullptr ? nullptr : KernelSymbol(world, work.kernel);
  for (std::uint32_t i = 0; symbol != nullptr && i < arguments->count && i < symbol->parameters.size(); ++i) {
    std::uint64_t value = 0;
    if (symbol->parameters[i].size != sizeof(value)) continue;
    std::memcpy(&value, arguments->pointers[i], sizeof(value));
    if (IsHostVisible(world, value)) return true;
  }
  return false;
}

bool WritesHost(const World& world, const CUDA_MEMCPY3D& copy) {
  if (copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) return false;
  return IsHostVisible(world, copy.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(copy.dstHost) : copy.dstDevice);
}

}  // namespace

bool RunsHostFunctions(const Work& work) noexcept {
  if (work.type == WorkType::HostFunction || work.type == WorkType::Callback) return true;
  if (work.type != WorkType::Launch) return false;
  for (const Step& step : work.launch.plan->steps) {
    if (step.type == CU_GRAPH_NODE_TYPE_HOST) return true;
  }
  return false;
}

bool MayBeAwaited(const World& world, const Work& work) noexcept {
  switch (work.type) {
    case WorkType::HostFunction:
    case WorkType::Callback:
    case WorkType::Batch:
      return true;
    case WorkType::Kernel:
      return (work.arguments != nullptr && work.arguments->host != nullptr) || UsesHost(world, work);
    case WorkType::Copy:
      return WritesHost(world, work.copy);
    case WorkType::Fill:
      return IsHostVisible(world, work.fill.dst);
    case WorkType::Write:
      return work.value.count != 0 || IsHostVisible(world, work.value.address);
    case WorkType::Launch:
      for (const Step& step : work.launch.plan->steps) {
        if (step.type == CU_GRAPH_NODE_TYPE_HOST || MayBeAwaited(world, step.work)) return true;
      }
      return false;
    default:
      return false;
  }
}

void AskForAttendance(World& world, const Work& work) noexcept {
  if (world.attended || world.on_awaited == nullptr || !MayBeAwaited(world, work)) return;
  world.attended = world.on_awaited(world.observer);
  if (!world.attended) world.on_awaited = nullptr;
}

}  // namespace cuaudit::sim
