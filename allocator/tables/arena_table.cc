// SPDX-License-Identifier: MIT
#include "allocator/tables/arena_table.h"

#include <memory>
#include <new>
#include <utility>

#include "allocator/blocks/capture.h"
#include "allocator/tables/device.h"
#include "allocator/tables/pool_table.h"

namespace cuaudit::alloc {

ArenaTable::~ArenaTable() {
  for (Arena* arena = first_.load(); arena != nullptr;) {
    while (arena->segments != nullptr) {
      Segment* const segment = std::exchange(arena->segments, arena->segments->next);
      for (Block* block = segment->first; block != nullptr; block = block->next) DropCaptured(block);
      delete segment;
    }
    delete std::exchange(arena, arena->next_all);
  }
}

Arena* ArenaTable::Of(Device* device, Pool* pool, StreamRecord* stream) noexcept {
  const auto find = [&]() -> Arena* {
    if (!pool->is_private) return stream->arena.load(std::memory_order_acquire);
    for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_of_pool) {
      if (arena->stream == stream) return arena;
    }
    return nullptr;
  };
  if (Arena* const arena = find(); arena != nullptr) return arena;
  const Held held(lock_);
  if (Arena* const arena = find(); arena != nullptr) return arena;
  Arena* const arena = new (std::nothrow) Arena;
  if (arena == nullptr) return nullptr;
  arena->environment = &env_;
  if (!arena->Init()) {
    delete arena;
    return nullptr;
  }
  arena->device = device;
  arena->pool = pool;
  arena->stream = stream;
  arena->index = count_++;
  arena->next_all = first_.load(std::memory_order_relaxed);
  first_.store(arena, std::memory_order_release);
  if (!pool->is_private) {
    stream->arena.store(arena, std::memory_order_release);
  } else {
    arena->next_of_pool = pool->arenas.load(std::memory_order_relaxed);
    pool->arenas.store(arena, std::memory_order_release);
  }
  return arena;
}

void Arena::Trace(TraceAction action, CUdeviceptr address, std::size_t size, std::size_t requested, void* stack, std::uint64_t stream_id,
                  std::uint64_t other, std::uint64_t sequence) const noexcept {
  TraceEvent event{};
  event.action = action;
  event.device = device->index;
  event.address = address;
  event.size = size;
  event.requested = requested;
  event.stream = stream_id;
  event.other = other;
  event.sequence = sequence;
  event.pool = pool->id();
  event.stack = stack;
  environment->tracer.record(environment->tracer.self, event);
}

void Arena::AddSegment(Segment* segment) noexcept {
  segment->next = segments;
  if (segments != nullptr) segments->back = segment;
  segments = segment;
}

void Arena::RemoveSegment(Segment* segment) noexcept {
  (segment->back == nullptr ? segments : segment->back->next) = segment->next;
  if (segment->next != nullptr) segment->next->back = segment->back;
}

void Arena::CountElided(const Block* block, const StreamRecord* waiter, const Use& use) const noexcept {
  environment->stamp_counts.elided.fetch_add(1, std::memory_order_relaxed);
  if (environment->Traced())
    Trace(TraceAction::UseElided, block->address.load(std::memory_order_relaxed), block->size,
          block->requested.load(std::memory_order_relaxed), nullptr, waiter->id, use.stream->id, use.sequence);
}

}  // namespace cuaudit::alloc
