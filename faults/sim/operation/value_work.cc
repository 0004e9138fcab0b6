// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/operation/value_work.h"

#include <sched.h>
#include <time.h>

#include "faults/sim/kernel/launch.h"
#include "faults/sim/memory/memory.h"
#include "include/cuaudit/semaphore.h"

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

namespace {

constexpr unsigned kMostOperations = 256;

}  // namespace

CUresult BatchWork(Call& call, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters, Work* work) noexcept {
  if (parameters == nullptr || parameters->flags != 0 || parameters->count > kMostOperations) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->count != 0 && parameters->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (call.world.Find<Context>(parameters->ctx) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < parameters->count; ++i) {
    Work each;
    const CUresult result = ReadValueOperation(call.world, parameters->paramArray[i], &each);
    if (result != CUDA_SUCCESS) return result;
  }
  const std::size_t bytes = parameters->count * sizeof(CUstreamBatchMemOpParams);
  Arguments* const kept = MakeArguments(call.world, 0, bytes);
  if (kept == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes != 0) std::memcpy(kept->values, parameters->paramArray, bytes);
  work->type = WorkType::Batch;
  work->arguments = kept;
  work->batch = *parameters;
  work->batch.paramArray = reinterpret_cast<CUstreamBatchMemOpParams*>(kept->values);
  return CUDA_SUCCESS;
}

CUresult RunBatch(World& world, const Work& work) noexcept {
  for (unsigned i = 0; i < work.batch.count; ++i) {
    Work each;
    (void)ReadValueOperation(world, work.batch.paramArray[i], &each);  // it was good when the node was made
    CUresult result = CUDA_SUCCESS;
    if (each.type == WorkType::Await) result = IsSatisfied(world, each.value) ? RunAwait(world, each.value) : CUDA_ERROR_LAUNCH_TIMEOUT;
    if (each.type == WorkType::Write) result = RunWrite(world, each.value);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

struct SemaphorePage {
  std::uint64_t magic;
  std::atomic<std::uint64_t> value;
};
static_assert(sizeof(SemaphorePage) == sizeof(cuaudit_semaphore_file));

namespace {

template <typename Parameters>
CUresult Copy(const Call& call, const CUexternalSemaphore* semaphores, const Parameters* parameters, unsigned count, Work* work) {
  if (count == 0 || semaphores == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    if (call.world.Find<ExternalSemaphore>(semaphores[i]) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (parameters[i].flags != 0) return CUDA_ERROR_INVALID_VALUE;  // about NvSciSync
  }
  const std::size_t handles = count * sizeof(CUexternalSemaphore);
  const std::size_t bytes = count * sizeof(Parameters);
  Arguments* const kept = MakeArguments(call.world, 0, handles + bytes);
  if (kept == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memcpy(kept->values, semaphores, handles);
  std::memcpy(kept->values + handles, parameters, bytes);
  work->arguments = kept;
  work->value = ValueWork{};
  work->value.wide = true;
  work->value.count = count;
  work->value.semaphores = reinterpret_cast<const CUexternalSemaphore*>(kept->values);
  work->value.parameters = kept->values + handles;
  return CUDA_SUCCESS;
}

bool HasCome(const ExternalSemaphore& semaphore, std::uint64_t wanted) {
  const std::uint64_t value = semaphore.page->value.load(std::memory_order_acquire);
  return semaphore.timeline ? value >= wanted : value != 0;
}

std::uint64_t Wanted(const ValueWork& wait, unsigned i) {
  return static_cast<const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS*>(wait.parameters)[i].params.fence.value;
}

}  // namespace

CUresult SignalWork(const Call& call, const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* parameters,
                    unsigned count, Work* work) noexcept {
  const CUresult result = Copy(call, semaphores, parameters, count, work);
  if (result == CUDA_SUCCESS) work->type = WorkType::Write;
  return result;
}

CUresult AwaitWork(const Call& call, const CUexternalSemaphore* semaphores, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters,
                   unsigned count, Work* work) noexcept {
  const CUresult result = Copy(call, semaphores, parameters, count, work);
  if (result == CUDA_SUCCESS) work->type = WorkType::Await;
  return result;
}

bool AreSignalled(const World& world, const ValueWork& wait) noexcept {
  for (unsigned i = 0; i < wait.count; ++i) {
    const ExternalSemaphore* const semaphore = world.Find<ExternalSemaphore>(wait.semaphores[i]);
    if (semaphore != nullptr && !HasCome(*semaphore, Wanted(wait, i))) return false;  // nobody waits for a destroyed semaphore
  }
  return true;
}

CUresult RunSignals(const World& world, const ValueWork& signal) noexcept {
  const auto* const parameters = static_cast<const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS*>(signal.parameters);
  for (unsigned i = 0; i < signal.count; ++i) {
    const ExternalSemaphore* const semaphore = world.Find<ExternalSemaphore>(signal.semaphores[i]);
    if (semaphore == nullptr) return CUDA_ERROR_EXTERNAL_DEVICE;
    semaphore->page->value.store(semaphore->timeline ? parameters[i].params.fence.value : 1, std::memory_order_release);
  }
  return CUDA_SUCCESS;
}

CUresult RunAwaits(const World& world, const ValueWork& wait) noexcept {
  if (wait.given_up) return CUDA_ERROR_LAUNCH_TIMEOUT;
  for (unsigned i = 0; i < wait.count; ++i) {
    const ExternalSemaphore* const semaphore = world.Find<ExternalSemaphore>(wait.semaphores[i]);
    if (semaphore == nullptr) return CUDA_ERROR_EXTERNAL_DEVICE;
    if (!HasCome(*semaphore, Wanted(wait, i))) return CUDA_ERROR_LAUNCH_TIMEOUT;  // in a graph
    if (!semaphore->timeline) semaphore->page->value.store(0, std::memory_order_relaxed);
  }
  return CUDA_SUCCESS;
}

void FreeSemaphore(World& world, ExternalSemaphore* semaphore) noexcept {
  world.semaphores.EraseValue(semaphore);
  MapRelease(semaphore->page, sizeof(SemaphorePage));
  world.Destroy(semaphore);
}

void CloseSemaphores(World& world) noexcept {
  for (const ExternalSemaphore* const semaphore : world.semaphores) MapRelease(semaphore->page, sizeof(SemaphorePage));
}

}  // namespace cuaudit::sim
