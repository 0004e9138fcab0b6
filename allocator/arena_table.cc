// SPDX-License-Identifier: MIT
#include "allocator/device.h"
#include "allocator/pool_table.h"

namespace cuaudit::alloc {

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

void Arena::CountElided(const Block* block, const StreamRecord* waiter, const Use& use) const noexcept {
  environment->stamp_counts.elided.fetch_add(1, std::memory_order_relaxed);
  if (environment->Traced())
    Trace(TraceAction::UseElided, block->address.load(std::memory_order_relaxed), block->size,
          block->requested.load(std::memory_order_relaxed), nullptr, waiter->id, use.stream->id, use.sequence);
}

}  // namespace cuaudit::alloc
