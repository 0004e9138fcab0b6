// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/operation/value_work.h"

#include <sched.h>
#include <time.h>

#include "faults/sim/memory/copy.h"
#include "faults/sim/operation/semaphore.h"

namespace cuaudit::sim {
namespace {

constexpr unsigned kCompare = 3;  // the bits of the flags that say how
constexpr std::uint64_t kNanosecondsPerSecond = 1000000000;
constexpr std::uint64_t kNanosecondsPerMillisecond = 1000000;

std::uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNanosecondsPerSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

unsigned BytesOf(const ValueWork& value) { return value.wide ? 8 : 4; }

// The memory at the time when the work runs: a free that is queued behind the work has not happened yet.
char* Find(const World& world, const ValueWork& value) {
  const Range* const range = world.ranges.Find(value.address);
  const std::uint64_t offset = range == nullptr ? 0 : value.address - range->base;
  return range == nullptr || !range->accessible || range->size - offset < BytesOf(value) ? nullptr : range->bytes + offset;
}

// The host may write the value at the same time.
std::uint64_t Load(const char* bytes, bool wide) {
  return wide ? __atomic_load_n(reinterpret_cast<const std::uint64_t*>(bytes), __ATOMIC_ACQUIRE)
              : __atomic_load_n(reinterpret_cast<const std::uint32_t*>(bytes), __ATOMIC_ACQUIRE);
}

CUresult CheckAddress(const World& world, const ValueWork& value) {
  if (value.address == 0 || value.address % BytesOf(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Range* const range = world.ranges.Find(value.address);
  if (range == nullptr || range->kind == Kind::ManagedMemory) return CUDA_ERROR_INVALID_VALUE;
  return IsUsable(world, value.address, BytesOf(value)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult ReadValueOperation(const World& world, const CUstreamBatchMemOpParams& operation, Work* work) noexcept {
  const Profile& profile = *world.profile;
  const bool flushes = profile.Attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) != 0;
  work->type = WorkType::Nothing;
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      if (operation.writeValue.flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
      work->type = WorkType::Write;
      work->value = {operation.writeValue.address, operation.writeValue.value64, 0, operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64,
                     false};
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      if ((operation.waitValue.flags & ~(kCompare | unsigned{CU_STREAM_WAIT_VALUE_FLUSH})) != 0) return CUDA_ERROR_INVALID_VALUE;
      if ((operation.waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH) != 0 && !flushes) return CUDA_ERROR_NOT_SUPPORTED;
      if ((operation.waitValue.flags & kCompare) == CU_STREAM_WAIT_VALUE_NOR &&
          profile.Attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR) == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
      work->type = WorkType::Await;
      work->value = {operation.waitValue.address, operation.waitValue.value64, operation.waitValue.flags & kCompare,
                     operation.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64, false};
      break;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      if (operation.flushRemoteWrites.flags != 0) return CUDA_ERROR_INVALID_VALUE;
      return flushes ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    case CU_STREAM_MEM_OP_BARRIER:
      return operation.memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (work->value.wide && profile.Attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (!work->value.wide) work->value.value &= 0xffffffffU;
  return CheckAddress(world, work->value);
}

bool IsSatisfied(const World& world, const ValueWork& wait) noexcept {
  if (wait.count != 0) return wait.given_up || AreSignalled(world, wait);
  const char* const bytes = Find(world, wait);
  if (bytes == nullptr || wait.given_up) return true;
  const std::uint64_t now = Load(bytes, wait.wide);
  const std::uint64_t mask = wait.wide ? ~std::uint64_t{0} : 0xffffffffU;
  switch (wait.compare) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return ((now - wait.value) & (wait.wide ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31)) == 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == wait.value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & wait.value) != 0;
    default:
      return (~(now | wait.value) & mask) != 0;
  }
}

CUresult RunWrite(World& world, const ValueWork& write) noexcept {
  if (write.count != 0) return RunSignals(world, write);
  char* const bytes = Find(world, write);
  if (bytes == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  if (write.wide) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(bytes), write.value, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(bytes), static_cast<std::uint32_t>(write.value), __ATOMIC_RELEASE);
  }
  return CUDA_SUCCESS;
}

CUresult RunAwait(const World& world, const ValueWork& wait) noexcept {
  if (wait.count != 0) return RunAwaits(world, wait);
  if (wait.given_up) return CUDA_ERROR_LAUNCH_TIMEOUT;
  return Find(world, wait) == nullptr ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

void BePatient(World& world) noexcept {
  Operation* oldest = nullptr;
  bool ends = false;  // with its context, which no device would wait for
  for (const Stream* const stream : world.busy_streams) {
    Operation* const head = stream->head;
    if (head->work.type != WorkType::Await || stream->busy) continue;
    if (ends && stream->owner->ending == 0) continue;
    if (oldest != nullptr && head->ticket > oldest->ticket && (ends || stream->owner->ending == 0)) continue;
    oldest = head;
    ends = stream->owner->ending != 0;
  }
  if (oldest == nullptr) return;
  const std::uint64_t now = Now();
  if (world.stuck_since == 0) world.stuck_since = now;
  if (!ends && now - world.stuck_since < world.patience_ms * kNanosecondsPerMillisecond) {
    pthread_mutex_unlock(&world.lock);
    sched_yield();
    pthread_mutex_lock(&world.lock);
    return;
  }
  oldest->work.value.given_up = true;
  world.stuck_since = 0;
}

}  // namespace cuaudit::sim
