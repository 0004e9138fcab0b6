// SPDX-License-Identifier: MIT
#include "allocator/core/core.h"

#include "allocator/driver_scope.h"
#include "allocator/errors.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

CUresult Core::Open(const DeviceConfig* configs, int count) noexcept {
  if (!environment.Open()) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Create: no host memory");
  const CUresult result = devices.Open(configs, count);
  if (result != CUDA_SUCCESS) environment.closed.store(true, std::memory_order_relaxed);
  return result;
}

CUresult Core::Close(std::size_t* live_blocks) noexcept {
  if (live_blocks != nullptr) *live_blocks = 0;
  if (environment.Forked()) return Refuse(CUDA_ERROR_NOT_INITIALIZED, "Close: in a forked child: the driver is not called");
  if (!environment.closed.exchange(true)) environment.AddDetour();
  std::size_t live = 0;
  CUresult first = environment.exiting.load(std::memory_order_relaxed) ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
  const auto keep = [&](CUresult result) {
    (void)environment.Note(result);  // also behind another error
    if (first == CUDA_SUCCESS) first = result;
  };
  const LastChance chance;
  bool synced = true;
  for (Arena* arena = arenas.First(); arena != nullptr; arena = arena->next_all) {
    caches.Empty(arena);
    if (!environment.exiting.load(std::memory_order_relaxed)) {
      const CUresult result = synchronizer.SyncArena(arena);
      synced = synced && (result == CUDA_SUCCESS || driver::IsSticky(result));
      keep(result);
    }
    const Held held(arena->lock);
    arena->Collect();
    for (const Segment* segment = arena->segments; segment != nullptr; segment = segment->next) {
      for (const Block* block = segment->first; block != nullptr; block = block->next)
        live += (block->state.load(std::memory_order_relaxed) & kStatusMask) == kLive;
    }
  }
  if (live_blocks != nullptr) *live_blocks = live;
  if (environment.exiting.load(std::memory_order_relaxed))
    return Refuse(CUDA_ERROR_DEINITIALIZED, "Close: the driver is shut down: its objects are left alone");
  if (!synced) return first;  // the uses are not over, as far as is known; their events are still needed
  bool all_gone = true;
  for (Arena* arena = arenas.First(); arena != nullptr; arena = arena->next_all) {
    keep(source.CloseAll(arena));
    all_gone = all_gone && arena->segments == nullptr;
  }
  // The words are written to until the streams are through, also when no block waits for that.
  bool written = true;
  for (StreamRecord* stream = streams.First(); stream != nullptr; stream = stream->next_all) {
    const CUresult result = stream->SynchronizeWord(environment.driver);
    keep(result);
    if (result != CUDA_SUCCESS && !driver::IsSticky(result)) {
      written = false;
      continue;
    }
    stream->ReleaseEvents();
  }
  std::uint64_t refused = 0;
  for (EventPool* pool = streams.events.First(); pool != nullptr; pool = pool->next) keep(pool->DestroyAll(environment.driver, &refused));
  keep(keepers.DestroyAll(&refused));
  (*devices.begin())->refused.fetch_add(refused, std::memory_order_relaxed);
  if (written) keep(streams.words.Free());
  // It dies with the context: that is kept until there is nothing to try again.
  if (all_gone && streams.words.empty()) keep(devices.ReleaseContexts());
  keep(chance.error());
  return first;
}

}  // namespace cuaudit::alloc
