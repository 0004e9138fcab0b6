// SPDX-License-Identifier: MIT
// Blocks that are kept until an event of the caller's.
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
  if (result == CUDA_SUCCESS) result = MakeStream(id, keeper->stream, device->context, &keeper->record);
  if (result != CUDA_SUCCESS) {
    if (driver.StreamDestroy(keeper->stream) != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
    return result;
  }
  keeper->next = device->keepers;
  *out = device->keepers = keeper.release();
  return CUDA_SUCCESS;
}

// One stream per device waits for the callers' events, so they need not outlive the call; later ones stand behind earlier ones. An event of
// a capture takes the stream that waits for it into the capture, where it may not wait for anything outside: until that is over, another
// one does. `view`: the capture, and what the event stands for in it; else `*sequence` is a recording behind the event. keeper_lock is
// held.
CUresult Core::WaitAsKeeper(Device* device, CUevent event, Keeper** out, CaptureView* view, std::uint64_t* sequence) noexcept {
  Keeper* keeper = device->keepers;
  for (; keeper != nullptr; keeper = keeper->next) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver.StreamIsCapturing(keeper->stream, &status);
    if (result != CUDA_SUCCESS) return result;
    if (status == CU_STREAM_CAPTURE_STATUS_NONE) break;
  }
  CUresult result = keeper != nullptr ? CUDA_SUCCESS : MakeKeeper(device, &keeper);
  if (result != CUDA_SUCCESS) return result;
  result = driver.StreamWaitEvent(keeper->stream, event, 0);
  if (result != CUDA_SUCCESS) return Refuse(result, "KeepAliveUntil: event %p cannot be waited for", static_cast<void*>(event));
  *out = keeper;
  result = LookAt(keeper->record, keeper->stream, view);
  if (result != CUDA_SUCCESS || view->id != 0) return result;
  return keeper->record->Record(driver, keeper->stream, sequence);
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
  if (result == CUDA_SUCCESS) {
    const Held held(device->keeper_lock);
    result = WaitAsKeeper(device, event, &keeper, &view, &sequence);
  }
  if (result == CUDA_SUCCESS && view.id != 0) {
    result = RecordCaptured(address, "KeepAliveUntil", keeper->record, view, false);
  } else if (result == CUDA_SUCCESS) {
    std::uint64_t before = 0;
    if (EditFound(block, address, "KeepAliveUntil", &result) != nullptr)
      result = AttachUse(block, "KeepAliveUntil", keeper->record, sequence, &before);
    if (before != 0) CountUse(&ThreadCache::uses_merged, &uses_merged);
    if (result == CUDA_SUCCESS && Traced()) TraceUse(address, keeper->record, sequence);
  }
  const CUresult left = current.Leave();
  return Note(result != CUDA_SUCCESS ? result : left);
}

}  // namespace cuaudit::alloc
