// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/entry/entry.h"
#include "faults/sim/entry/process.h"
#include "faults/sim/oracle/attendance.h"
#include "faults/sim/stream/schedule.h"

namespace cuaudit::sim {
namespace {

constexpr std::uint32_t kMostRounds = 10;

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
