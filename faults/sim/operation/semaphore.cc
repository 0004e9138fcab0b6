// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/operation/semaphore.h"

#include "faults/sim/kernel/arguments.h"
#include "include/cuaudit/semaphore.h"

namespace cuaudit::sim {

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
