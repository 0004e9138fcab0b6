// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/attendance.h"

#include "faults/sim/arguments.h"
#include "faults/sim/call.h"
#include "faults/sim/plan.h"
#include "faults/sim/process.h"
#include "faults/sim/schedule.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint32_t kMostRounds = 10;

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

// Ticket of the first operation that the CPU may wait for; 0: none.
std::uint64_t FirstAwaited(const World& world) {
  std::uint64_t first = 0;
  for (const Stream* const stream : world.busy_streams) {
    for (const Operation* operation = stream->head; operation != nullptr; operation = operation->next) {
      if (first != 0 && operation->ticket >= first) break;
      if ((stream->busy && operation == stream->head) || !MayBeAwaited(world, operation->work)) continue;
      first = operation->ticket;
      break;
    }
  }
  return first;
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

std::uint64_t RunUnattended(World* at, Attendance* attendance) noexcept {
  World& world = *at;
  if (world.closed.load(std::memory_order_relaxed) || !UsableHere(world)) return 0;
  const std::uint64_t serial = ThreadSerial();
  pthread_mutex_lock(&world.lock);
  Call call{world, world.FindThread(serial), nullptr, false};
  if (call.thread == nullptr) {
    pthread_mutex_unlock(&world.lock);
    return 0;
  }
  const std::uint64_t first = FirstAwaited(world);
  const bool waits = first != 0 && first < attendance->since;
  attendance->rounds = waits ? attendance->rounds + 1 : 0;
  if (!waits) attendance->since = world.next_ticket;
  const bool due = waits && (world.calls == attendance->calls || attendance->rounds >= kMostRounds);
  attendance->calls = world.calls;
  std::uint64_t count = 0;
  const bool counted = due && attendance->forced != nullptr;
  if (counted) attendance->forced->fetch_add(1, std::memory_order_relaxed);
  // Work that is queued meanwhile starts a wait of its own.
  for (std::uint64_t awaited = due ? first : 0; awaited != 0 && awaited < attendance->since; awaited = FirstAwaited(world)) {
    if (!RunOne(world, call.thread)) break;
    ++count;
  }
  if (counted && count == 0) attendance->forced->fetch_sub(1, std::memory_order_relaxed);
  if (due) attendance->rounds = 0;
  Leave(call);
  return count;
}

}  // namespace cuaudit::sim
