// SPDX-License-Identifier: MIT
#include "allocator/requests/keepers.h"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

Keepers::~Keepers() {
  for (const std::atomic<Keeper*>& first : first_) {
    for (Keeper* keeper = first.load(); keeper != nullptr;) delete std::exchange(keeper, keeper->next);
  }
}

CUresult Keepers::Make(Device* device, Keeper** out) noexcept {
  std::unique_ptr<Keeper> keeper(new (std::nothrow) Keeper);
  if (keeper == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "KeepAliveUntil: no host memory");
  unsigned long long id = 0;
  CUresult result = env_.driver.StreamCreate(&keeper->stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = env_.driver.StreamGetId(keeper->stream, &id);
  if (result == CUDA_SUCCESS) result = streams_.Make(id, keeper->stream, device->context, &keeper->record);
  if (result != CUDA_SUCCESS) {
    if (env_.driver.StreamDestroy(keeper->stream) != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
    return result;
  }
  (void)keeper->in_use.try_lock();  // the caller's; nobody else knows it yet
  keeper->next = first_[device->index].load(std::memory_order_relaxed);
  *out = keeper.release();
  while (!first_[device->index].compare_exchange_weak((*out)->next, *out, std::memory_order_acq_rel)) {
  }
  return CUDA_SUCCESS;
}

CUresult Keepers::Wait(Device* device, CUevent event, StreamRecord** out, CaptureView* view, std::uint64_t* sequence) noexcept {
  CUresult result = CUDA_SUCCESS;
  Keeper* keeper = first_[device->index].load(std::memory_order_acquire);
  std::unique_lock<Lock> in_use;
  for (; keeper != nullptr; keeper = keeper->next) {
    in_use = std::unique_lock<Lock>(keeper->in_use, std::try_to_lock);
    if (!in_use.owns_lock()) continue;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    result = env_.driver.StreamIsCapturing(keeper->stream, &status);
    if (result != CUDA_SUCCESS) return result;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) break;
  }
  if (keeper == nullptr) {
    result = Make(device, &keeper);
    if (result != CUDA_SUCCESS) return result;
    in_use = std::unique_lock<Lock>(keeper->in_use, std::adopt_lock);
  }
  result = env_.driver.StreamWaitEvent(keeper->stream, event, 0);
  if (result != CUDA_SUCCESS) return Refuse(result, "KeepAliveUntil: event %p cannot be waited for", static_cast<void*>(event));
  *out = keeper->record;
  result = streams_.LookAt(keeper->record, keeper->stream, view);
  if (result != CUDA_SUCCESS || view->id != 0) return result;
  return keeper->record->Record(env_.driver, keeper->stream, sequence);
}

void Keepers::LookAt(Device* device) noexcept {
  for (Keeper* keeper = first_[device->index].load(std::memory_order_acquire); keeper != nullptr; keeper = keeper->next) {
    if (keeper->record->capture.load(std::memory_order_acquire) == 0) continue;
    const std::unique_lock<Lock> in_use(keeper->in_use, std::try_to_lock);
    if (!in_use.owns_lock()) continue;
    const CurrentContext current(env_.driver, device->context, true);
    CaptureView view;
    if (current.result() == CUDA_SUCCESS) (void)env_.Note(streams_.LookAt(keeper->record, keeper->stream, &view));
  }
}

CUresult Keepers::DestroyAll(std::uint64_t* refused) noexcept {
  CUresult first = CUDA_SUCCESS;
  for (std::atomic<Keeper*>& list : first_) {
    for (Keeper* next = list.exchange(nullptr); next != nullptr;) {
      const std::unique_ptr<Keeper> keeper(std::exchange(next, next->next));
      const CUresult result = env_.Note(env_.driver.StreamDestroy(keeper->stream));
      *refused += result != CUDA_SUCCESS && !driver::IsSticky(result);
      if (first == CUDA_SUCCESS) first = result;
    }
  }
  return first;
}

}  // namespace cuaudit::alloc
