// SPDX-License-Identifier: MIT
#include "allocator/requests/synchronizer.h"

#include <algorithm>

namespace cuaudit::alloc {

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
