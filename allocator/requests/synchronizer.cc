// SPDX-License-Identifier: MIT
#include "allocator/requests/synchronizer.h"

#include <algorithm>
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

bool Synchronizer::MayCapture(Device* device) noexcept {
  if (device->routed.load(std::memory_order_acquire) != 0) return true;
  keepers_.LookAt(device);
  for (const StreamRecord* stream = streams_.First(); stream != nullptr; stream = stream->next_all) {
    if (InCapture(stream, device)) return true;
  }
  return false;
}

// Whether the recordings tell of the use is learnt by waiting for them: asked before, it may have changed by then, and a capture must not
// pay for that.
CUresult Synchronizer::SettleUse(StreamRecord* stream, std::uint64_t sequence, const Arena* arena, bool* settled) noexcept {
  const CUresult result = stream->SynchronizeRecorded(env_.driver, sequence, settled);
  if (result != CUDA_SUCCESS || *settled) return result;
  Device* const device = stream->device != nullptr ? stream->device : arena->device;
  const Held settling(device->settling);
  *settled = !MayCapture(device);
  if (*settled) return stream->SynchronizeAll(env_.driver);
  arena->device->left.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult Synchronizer::SyncArena(Arena* arena) noexcept {
  // Each stream once, by index: what cannot be waited for now must not be tried for ever.
  for (std::uint32_t from = 0;;) {
    StreamRecord* next = nullptr;
    std::uint64_t sequence = 0;
    {
      const Held held(arena->lock);
      arena->Collect();
      arena->Resettle(Arena::kEverything);
      const auto look = [&](Block* block) {
        arena->Recognize(block);
        if (IsInCapture(block)) return;  // it stays whatever is over, and a capture may forbid to wait
        for (const Use& use : block->uses.entries()) {
          if (use.stream->index < from || (next != nullptr && use.stream->index > next->index) || use.stream->IsOver(use.sequence))
            continue;
          sequence = use.stream == next ? std::max(sequence, use.sequence) : use.sequence;
          next = use.stream;
        }
      };
      for (Block* block = arena->waiting; block != nullptr; block = block->link) look(block);
      for (const FreeBins& set : arena->pending) {
        for (Block* block = set.First(); block != nullptr; block = set.Next(block)) look(block);
      }
    }
    if (next == nullptr) break;
    from = next->index + 1;
    bool settled = false;
    const CUresult result = SettleUse(next, sequence, arena, &settled);
    if (result != CUDA_SUCCESS) return result;
  }
  const Held held(arena->lock);
  for (FreeBins& set : arena->pending) {
    Block* over = nullptr;
    Block* following = set.First();
    while (following != nullptr) {
      Block* const block = following;
      following = set.Next(block);
      const auto uses = block->uses.entries();
      if (!std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return arena->IsOver(use); })) continue;
      arena->Remove(block);
      block->link = over;
      over = block;
    }
    while (over != nullptr) {
      Block* const block = over;
      over = block->link;
      block->link = nullptr;
      arena->Settle(block);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
