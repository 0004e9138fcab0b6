// SPDX-License-Identifier: MIT
// The part of Arena about blocks that the streams of others still use.
#include "allocator/blocks/capture.h"
#include "allocator/tables/arena.h"
#include "allocator/tables/device.h"

namespace cuaudit::alloc {

bool Arena::IsOver(const Use& use) const noexcept { return stream->HasWaited(use.stream, use.sequence); }

void Arena::Recognize(Block* block) const noexcept {
  if (environment->captured_streams.load(std::memory_order_relaxed) == 0) return;
  for (std::uint32_t i = 0; i < block->uses.size();) {
    StreamRecord* const before = block->uses.entries()[i].stream;
    StreamRecord* const now = before->same.load(std::memory_order_acquire);
    if (now != nullptr) {
      block->uses.Rename(before, now, before->same_sequence);
      i = 0;
    } else {
      ++i;
    }
  }
}

[[gnu::noinline]] void Arena::CountPending(Block* block, bool is_pending) noexcept {
  if (block->counted_pending == is_pending) return;
  block->counted_pending = is_pending;
  const std::int64_t sign = is_pending ? 1 : -1;
  const Held held(device->totals.lock);
  AddTo(device->totals.pending[0], block->large, sign);
  AddTo(device->totals.pending[1], block->large, sign * static_cast<std::int64_t>(block->size));
}

// Of a block that uses were noted for; those that are over go.
[[gnu::noinline]] Place Arena::PlaceOf(Block* block) noexcept {
  if (block->captured != nullptr) DropEnded(block);
  Recognize(block);
  block->uses.Prune([this, block](const Use& use) {
    if (use.stream->IsOver(use.sequence)) return true;
    if (!stream->HasWaited(use.stream, use.sequence)) return false;
    if (use.stream != stream) CountElided(block, stream, use);
    Owe(block, stream->NextSequence());  // over for others when what this stream has waited for is
    return true;
  });
  if (block->captured != nullptr) return Place::Waiting;
  if (!block->uses.empty()) return environment->options.reuse == Reuse::Poll ? Place::Waiting : Place::Pending;
  block->noted.store(false, std::memory_order_relaxed);
  return Place::Ready;
}

// False: no host memory.
bool Arena::ShareUses(const Block* block, Block* rest) noexcept {
  if (!rest->uses.Merge(block->uses)) return false;
  rest->noted.store(true, std::memory_order_relaxed);
  return true;
}

void Arena::Resettle(std::size_t limit) noexcept {
  Block* block = waiting;
  for (std::size_t left = limit; block != nullptr && left != 0;) {
    Block* const next = block->link;
    bool may_go = !IsInCapture(block);
    if (may_go) Recognize(block);
    if (environment->options.reuse == Reuse::Poll) {  // else it is pending from then on
      for (const Use& use : block->uses.entries()) may_go = may_go && IsOver(use);
    }
    if (may_go) {
      Remove(block);
      Settle(block);
    } else {
      --left;
    }
    block = next;
  }
}

void Arena::Promote(std::size_t limit) noexcept {
  for (FreeBins& set : pending) {
    std::size_t left = limit;
    Block* next = set.First();
    while (next != nullptr && left != 0) {
      Block* const block = next;
      next = set.Next(block);
      bool is_over = true;
      for (const Use& use : block->uses.entries()) is_over = is_over && IsOver(use);
      if (is_over) {
        Remove(block);
        Settle(block);
      } else {
        --left;
      }
    }
  }
}

// Of the blocks that wait, or whose next owner would have to, the smallest that fits and asks nothing of this stream.
Block* Arena::FindImplied(const Request& request) const noexcept {
  const auto implied = [this, &request](const Block* block) {
    if (block->captured != nullptr || !MayServe(block, request)) return false;
    for (const Use& use : block->uses.entries()) {
      if (!request.stream->HasWaited(use.stream, use.sequence)) return false;
    }
    return true;
  };
  const FreeBins& set = pending[Index(request.large)];
  for (Block* block = set.AtLeast(request.size); block != nullptr; block = set.Next(block)) {
    if (implied(block)) return block;
  }
  Block* best = nullptr;
  for (Block* block = waiting; block != nullptr; block = block->link) {
    if (block->large != request.large || block->size < request.size || (best != nullptr && best->size <= block->size)) continue;
    if (implied(block)) best = block;
  }
  return best;
}

}  // namespace cuaudit::alloc
