// SPDX-License-Identifier: MIT
#include "allocator/tables/arena.h"

#include <algorithm>

#include "allocator/tables/device.h"
#include "allocator/tables/pool_table.h"

namespace cuaudit::alloc {

Block* Arena::TakeRecord() noexcept {
  if (records_ == nullptr) return environment->store.Take();
  Block* const block = records_;
  records_ = block->link;
  block->link = nullptr;
  --record_count_;
  return block;
}

void Arena::GiveRecord(Block* block) noexcept {
  constexpr std::size_t kKept = 32;
  if (record_count_ == kKept) return environment->store.Give(block);
  BlockStore::Reset(block);
  block->link = records_;
  records_ = block;
  ++record_count_;
}

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

void Arena::CountPending(Block* block, bool is_pending) noexcept {
  if (block->counted_pending == is_pending) return;
  block->counted_pending = is_pending;
  const std::int64_t sign = is_pending ? 1 : -1;
  const Held held(device->totals.lock);
  AddTo(device->totals.pending[0], block->large, sign);
  AddTo(device->totals.pending[1], block->large, sign * static_cast<std::int64_t>(block->size));
}

void Arena::Insert(Block* block, Place place) noexcept {
  block->place = place;
  if (environment->options.garbage_collection_threshold > 0.0) block->age = device->searches.load(std::memory_order_relaxed);
  block->state.store((block->state.load(std::memory_order_relaxed) & ~kFlagMask) | kFree, std::memory_order_relaxed);
  if (place == Place::Ready && !block->counted_pending) [[likely]] {
    ready[Index(block->large)].Insert(block);
  } else {
    InsertElsewhere(block, place);
  }
}

void Arena::InsertElsewhere(Block* block, Place place) noexcept {
  const std::size_t i = Index(block->large);
  if (block->counted_pending != (place == Place::Waiting)) CountPending(block, place == Place::Waiting);
  switch (place) {
    case Place::Waiting:
      block->link = nullptr;
      block->link_back = waiting_last;
      (waiting_last == nullptr ? waiting : waiting_last->link) = block;
      waiting_last = block;
      ++waiting_count;
      waiting_large += i;
      break;
    case Place::Unmapped:
      unmapped[i].Insert(block);
      break;
    case Place::Pending:
      pending[i].Insert(block);
      break;
    default:
      ready[i].Insert(block);
  }
}

void Arena::Remove(Block* block) noexcept {
  const Place place = block->place;
  block->place = Place::None;
  if (place == Place::Ready) [[likely]] {
    ready[Index(block->large)].Remove(block);
  } else if (place != Place::None) {
    RemoveElsewhere(block, place);
  }
}

void Arena::RemoveElsewhere(Block* block, Place place) noexcept {
  const std::size_t i = Index(block->large);
  if (place == Place::Unmapped) return unmapped[i].Remove(block);
  if (place == Place::Pending) return pending[i].Remove(block);
  (block->link_back == nullptr ? waiting : block->link_back->link) = block->link;
  (block->link == nullptr ? waiting_last : block->link->link_back) = block->link_back;
  block->link = block->link_back = nullptr;
  if (--waiting_count < looked_at) looked_at = waiting_count;
  waiting_large -= i;
  CountPending(block, false);
}

// Of a neighbour that `block` takes in: what it is waited for, and its record.
inline bool Arena::TakeIn(Block* block, Block* neighbour) noexcept {
  if (neighbour->noted.load(std::memory_order_relaxed)) {
    if (!block->uses.Merge(neighbour->uses)) return false;  // no host memory: they stay apart
    block->noted.store(true, std::memory_order_relaxed);
  }
  Remove(neighbour);
  block->size += neighbour->size;
  block->own_sequence = std::max(block->own_sequence, neighbour->own_sequence);
  return true;
}

// `block`, in nobody's set, takes in the one before it, which is in one. What the map has under an address at which no block begins any
// more stays: whoever finds it compares addresses.
inline bool Arena::AbsorbBefore(Block* block) noexcept {
  Block* const neighbour = block->prev;
  if (!TakeIn(block, neighbour)) return false;
  block->address.store(neighbour->address.load(std::memory_order_relaxed), std::memory_order_relaxed);
  block->prev = neighbour->prev;
  (block->prev != nullptr ? block->prev->next : block->segment->first) = block;
  GiveRecord(neighbour);
  return true;
}

// The same with the one behind it.
inline bool Arena::AbsorbBehind(Block* block) noexcept {
  Block* const neighbour = block->next;
  if (!TakeIn(block, neighbour)) return false;
  block->next = neighbour->next;
  if (block->next != nullptr) block->next->prev = block;
  GiveRecord(neighbour);
  return true;
}

// Both, where they are in sets of that kind. True: one of them was.
inline bool Arena::AbsorbBoth(Block* block, Place place) noexcept {
  const bool before = block->prev != nullptr && block->prev->place == place && AbsorbBefore(block);
  const bool behind = block->next != nullptr && block->next->place == place && AbsorbBehind(block);
  return before || behind;
}

bool Arena::Init() noexcept {
  for (const bool large : {false, true}) {
    const bool up_to_2_mib = !large && !environment->options.expandable_segments;  // a small segment's; pages merge to more
    if (!ready[Index(large)].Init(up_to_2_mib)) return false;
    if (environment->options.reuse == Reuse::Wait && !pending[Index(large)].Init(up_to_2_mib)) return false;
  }
  return true;
}

// Of a block that uses were noted for; those that are over go.
Place Arena::PlaceOf(Block* block) noexcept {
  if (block->captured != nullptr) DropEnded(block);
  Recognize(block);
  block->uses.Prune([this, block](const Use& use) {
    if (use.stream->IsOver(use.sequence)) return true;
    if (!stream->HasWaited(use.stream, use.sequence)) return false;
    if (use.stream != stream) CountElided(block, stream, use);
    block->own_sequence = stream->NextSequence();  // over for others when what this stream has waited for is
    return true;
  });
  if (block->captured != nullptr) return Place::Waiting;
  if (!block->uses.empty()) return environment->options.reuse == Reuse::Poll ? Place::Waiting : Place::Pending;
  block->noted.store(false, std::memory_order_relaxed);
  return Place::Ready;
}

void Arena::Settle(Block* block) noexcept {
  const Place place = block->noted.load(std::memory_order_relaxed) ? PlaceOf(block) : Place::Ready;
  if (place != Place::Waiting) {
    if (environment->Traced() && block->stream != nullptr)
      Trace(TraceAction::FreeCompleted, block->address.load(std::memory_order_relaxed), block->size,
            block->requested.load(std::memory_order_relaxed), nullptr, block->stream->id);
    block->stream = nullptr;
    block->requested.store(0, std::memory_order_relaxed);
    if (block->has_stack) block->stack.store(nullptr, std::memory_order_relaxed);
    block->has_stack = false;
    (void)AbsorbBoth(block, place);
  }
  Insert(block, place);
}

void Arena::Collect() noexcept {
  if (returned.load(std::memory_order_relaxed) == nullptr) return;
  Block* block = returned.exchange(nullptr, std::memory_order_acquire);
  const std::uint64_t own = stream->NextSequence();
  while (block != nullptr) {
    Block* const next = block->link;
    block->link = nullptr;
    TakeBack(block, own);
    block = next;
  }
}

void Arena::TakeBack(Block* block, std::uint64_t own) noexcept {
  // A lent block was not its arena's stream's: what that did with it before stands.
  if ((block->state.load(std::memory_order_relaxed) & kForeign) == 0) block->own_sequence = own;
  if (block->used.load(std::memory_order_relaxed)) ClaimUses(block);
  ++stamped_frees;
  stamped_bytes += block->size;
  if (environment->IsOversize(block->size)) {
    const Held held(device->totals.lock);
    AddTo(&device->totals.oversize_allocations, -1);
  }
  Settle(block);
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

Block* Arena::FindIn(const FreeBins* set, const Request& request) const noexcept {
  Block* const found = set[Index(request.large)].AtLeast(request.size);
  return found != nullptr && MayServe(found, request) ? found : nullptr;
}

// With max_split_size an oversize block, which is never split, serves none but oversize requests, and those that are not much smaller.
bool Arena::MayServe(const Block* block, const Request& request) const noexcept {
  const Options& options = environment->options;
  if (!request.large || options.max_split_size == 0 || block->segment->expandable) return true;
  return request.size < options.max_split_size ? block->size < options.max_split_size
                                               : block->size <= request.size + options.max_non_split_rounding;
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

bool Arena::ShouldSplit(const Block* block, std::size_t size) const noexcept {
  const std::size_t rest = block->size - size;
  if (pool->options().no_split) return false;
  if (!block->large || block->segment->expandable) return rest >= kMinBlock;
  const std::size_t limit = environment->options.max_split_size;
  return rest > kSmallLimit && (limit == 0 || size < limit);
}

void Arena::SettleUnmapped(Block* block) noexcept {
  block->mapped = false;
  block->uses.Clear();
  block->noted.store(false, std::memory_order_relaxed);
  environment->map.Remove(block);
  (void)AbsorbBoth(block, Place::Unmapped);
  Insert(block, Place::Unmapped);
}

Block* Arena::SplitAt(Block* block, std::size_t size, Block* spare) noexcept {
  Block* const rest = spare != nullptr ? spare : TakeRecord();
  if (rest == nullptr) return nullptr;
  if (block->noted.load(std::memory_order_relaxed)) {
    if (!rest->uses.Merge(block->uses)) {
      GiveRecord(rest);
      return nullptr;
    }
    rest->noted.store(true, std::memory_order_relaxed);
  }
  rest->address.store(block->address.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
  rest->arena = this;
  rest->size = block->size - size;
  rest->large = block->large;
  rest->mapped = block->mapped;
  rest->own_sequence = block->own_sequence;
  rest->segment = block->segment;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

void Arena::Split(Block* block, std::size_t size) noexcept {
  if (!ShouldSplit(block, size)) return;
  Block* const rest = SplitAt(block, size);
  if (rest == nullptr) return;
  // The block was ready, and so had taken in what was ready behind it. Whatever became ready there while the block was in nobody's set and
  // the lock was let go, did not find it.
  const bool meets_ready = rest->next != nullptr && rest->next->place == Place::Ready;
  if (meets_ready || rest->noted.load(std::memory_order_relaxed)) return Settle(rest);
  Insert(rest, Place::Ready);
}

inline void Arena::Hand(Block* block, std::size_t bytes, std::size_t size, StreamRecord* to) noexcept {
  block->place = Place::None;
  if (block->noted.load(std::memory_order_relaxed)) {
    block->uses.Clear();
    block->recorded.Clear();
    block->noted.store(false, std::memory_order_relaxed);
  }
  block->stream = to;
  block->key = static_cast<std::uint32_t>(size / kMinBlock);
  block->requested.store(bytes, std::memory_order_relaxed);
  const std::uint64_t life = (block->state.load(std::memory_order_relaxed) & ~kFlagMask) + kOneLife;
  block->state.store(life | kLive | (to == stream ? 0 : kForeign), std::memory_order_release);
  environment->map.Put(block);
  if (environment->IsOversize(block->size)) {
    const Held held(device->totals.lock);
    AddTo(&device->totals.oversize_allocations, 1);
  }
}

void Arena::GiveOut(Block* block, const Request& request) noexcept {
  block->given_in = request.capture;
  if (request.stack != nullptr) block->stack.store(request.stack, std::memory_order_relaxed);
  block->has_stack = request.stack != nullptr;
  Hand(block, request.bytes, request.size, request.stream);
}

void Arena::GiveOut(Block* block, std::size_t bytes, std::size_t size, StreamRecord* to) noexcept {
  block->given_in = 0;
  block->has_stack = false;
  Hand(block, bytes, size, to);
}

bool Arena::MergeMixed() noexcept {
  bool any = false;
  for (FreeBins& set : pending) {
    Block* following = set.First();
    while (following != nullptr) {
      Block* const block = following;
      following = set.Next(block);
      const bool mixed =
          (block->prev != nullptr && block->prev->place == Place::Ready) || (block->next != nullptr && block->next->place == Place::Ready);
      if (!mixed) continue;
      Remove(block);
      any = AbsorbBoth(block, Place::Ready) || any;
      // What it has become may touch other pending blocks: they follow when their turn comes.
      Insert(block, Place::Pending);
    }
  }
  return any;
}

}  // namespace cuaudit::alloc
