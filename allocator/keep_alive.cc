// SPDX-License-Identifier: MIT
// Blocks that are kept until an event of the caller's.
#include <mutex>
#include <new>

#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {

CUresult Core::MakeKeeper(Device* device, Keeper** out) noexcept {
  std::unique_ptr<Keeper> keeper(new (std::nothrow) Keeper);
  if (keeper == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "KeepAliveUntil: no host memory");
  unsigned long long id = 0;
  CUresult result = driver.StreamCreate(&keeper->stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) return result;
  result = driver.StreamGetId(keeper->stream, &id);
  if (result == CUDA_SUCCESS) result = streams.Make(id, keeper->stream, device->context, &keeper->record);
  if (result != CUDA_SUCCESS) {
    if (driver.StreamDestroy(keeper->stream) != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
    return result;
  }
  (void)keeper->in_use.try_lock();  // the caller's; nobody else knows it yet
  keeper->next = device->keepers.load(std::memory_order_relaxed);
  *out = keeper.release();
  while (!device->keepers.compare_exchange_weak((*out)->next, *out, std::memory_order_acq_rel)) {
  }
  return CUDA_SUCCESS;
}

// A stream of ours waits for the callers' events, so they need not outlive the call; later ones stand behind earlier ones. Calls that come
// at once each have one. An event of a capture takes the stream that waits for it into the capture, where it may not wait for anything
// outside: until that is over, another one does. `view`: the capture, and what the event stands for in it; else `*sequence` is a recording
// behind the event.
CUresult Core::WaitAsKeeper(Device* device, CUevent event, Keeper** out, CaptureView* view, std::uint64_t* sequence) noexcept {
  CUresult result = CUDA_SUCCESS;
  Keeper* keeper = device->keepers.load(std::memory_order_acquire);
  std::unique_lock<Lock> in_use;
  for (; keeper != nullptr; keeper = keeper->next) {
    in_use = std::unique_lock<Lock>(keeper->in_use, std::try_to_lock);
    if (!in_use.owns_lock()) continue;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    result = driver.StreamIsCapturing(keeper->stream, &status);
    if (result != CUDA_SUCCESS) return result;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) break;
  }
  if (keeper == nullptr) {
    result = MakeKeeper(device, &keeper);
    if (result != CUDA_SUCCESS) return result;
    in_use = std::unique_lock<Lock>(keeper->in_use, std::adopt_lock);
  }
  result = driver.StreamWaitEvent(keeper->stream, event, 0);
  if (result != CUDA_SUCCESS) return Refuse(result, "KeepAliveUntil: event %p cannot be waited for", static_cast<void*>(event));
  *out = keeper;
  result = streams.LookAt(keeper->record, keeper->stream, view);
  if (result != CUDA_SUCCESS || view->id != 0) return result;
  return keeper->record->Record(driver, keeper->stream, sequence);
}

// Those that were taken into a capture: ours, so they can be asked whether it is over, though nobody names a stream of it any more.
void Core::LookAtKeepers(Device* device) noexcept {
  for (Keeper* keeper = device->keepers.load(std::memory_order_acquire); keeper != nullptr; keeper = keeper->next) {
    if (keeper->record->capture.load(std::memory_order_acquire) == 0) continue;
    const std::unique_lock<Lock> in_use(keeper->in_use, std::try_to_lock);
    if (!in_use.owns_lock()) continue;
    const CurrentContext current(driver, device->context, true);
    CaptureView view;
    if (current.result() == CUDA_SUCCESS) (void)Note(streams.LookAt(keeper->record, keeper->stream, &view));
  }
}

CUresult Core::KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  CUresult error = Usable("KeepAliveUntil");
  if (error != CUDA_SUCCESS) return error;
  Block* const block = Edit(address, "KeepAliveUntil", &error);
  if (block == nullptr) return error;
  Device* const device = block->arena.load(std::memory_order_relaxed)->device;
  const bool room = block->uses.Reserve(block->uses.size() + 1 + RoomBeyond(block));
  EndEdit(block, 0);
  if (!room) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "KeepAliveUntil: no host memory");
  CurrentContext current(driver, device->context);
  CUresult result = current.result();
  Keeper* keeper = nullptr;
  CaptureView view;
  std::uint64_t sequence = 0;
  if (result == CUDA_SUCCESS) result = WaitAsKeeper(device, event, &keeper, &view, &sequence);
  if (result == CUDA_SUCCESS && view.id != 0) {
    result = RecordCaptured(address, "KeepAliveUntil", keeper->record, view, false);
  } else if (result == CUDA_SUCCESS) {
    std::uint64_t before = 0;
    if (EditFound(block, address, "KeepAliveUntil", &result) != nullptr)
      result = AttachUse(block, "KeepAliveUntil", keeper->record, sequence, &before);
    if (before != 0) caches.CountUse(&ThreadCache::uses_merged, &uses_merged);
    if (result == CUDA_SUCCESS && Traced()) TraceUse(address, keeper->record, sequence);
  }
  const CUresult left = current.Leave();
  return Note(result != CUDA_SUCCESS ? result : left);
}

}  // namespace cuaudit::alloc
