// SPDX-License-Identifier: MIT
#include "allocator/tables/arena.h"

#include <algorithm>

#include "allocator/tables/device.h"

namespace cuaudit::alloc {

Block* Arena::TakeRecord() noexcept {
  if (records_ == nullptr) return environment->store.Take();
  Block* const block = records_;
  records_ = block->link;
  block->link = nullptr;
  --record_count_;
  return block;
}

[[gnu::always_inline]] inline void Arena::GiveRecord(Block* block) noexcept {
  constexpr std::size_t kKept = 32;
  if (record_count_ == kKept || block->noted.load(std::memory_order_relaxed)) [[unlikely]]
    return environment->store.Give(block);
  // What stood in a set already says nothing of a user; SplitAt says all the rest anew.
  block->state.store(block->state.load(std::memory_order_relaxed) & ~kFlagMask, std::memory_order_release);
  block->address.store(0, std::memory_order_relaxed);
  block->link = records_;
  records_ = block;
  ++record_count_;
}

// Insert and Remove, for the functions of this file that every direct call passes.
[[gnu::always_inline]] inline void Arena::Enter(Block* block, Place place) noexcept {
  block->place = place;
  if (environment->notes_ages) [[unlikely]]
    block->age = device->searches.load(std::memory_order_relaxed);
  block->state.store((block->state.load(std::memory_order_relaxed) & ~kFlagMask) | kFree, std::memory_order_relaxed);
  if (place == Place::Ready && !block->counted_pending) [[likely]] {
    ready[Index(block->large)].Insert(block);
  } else {
    InsertElsewhere(block, place);
  }
}

void Arena::Insert(Block* block, Place place) noexcept { Enter(block, place); }

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
      (void)unmapped[i].Insert(block);
      break;
    case Place::Pending:
      pending[i].Insert(block);
      break;
    default:
      ready[i].Insert(block);
  }
}

[[gnu::always_inline]] inline void Arena::Leave(Block* block) noexcept {
  const Place place = block->place;
  block->place = Place::None;
  if (place == Place::Ready) [[likely]] {
    ready[Index(block->large)].Remove(block);
  } else if (place != Place::None) {
    RemoveElsewhere(block, place);
  }
}

void Arena::Remove(Block* block) noexcept { Leave(block); }

void Arena::RemoveElsewhere(Block* block, Place place) noexcept {
  const std::size_t i = Index(block->large);
  if (place == Place::Unmapped) return (void)unmapped[i].Remove(block);
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
  Leave(neighbour);
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
  *(block->prev != nullptr ? &block->prev->next : &block->segment->first) = block;
  GiveRecord(neighbour);
  return true;
}

// The same with the one behind it.
inline bool Arena::AbsorbBehind(Block* block) noexcept {
  Block* const neighbour = block->next;
  if (!TakeIn(block, neighbour)) return false;
  block->next = neighbour->next;
  *LinkBackOf(block->next) = block;
  GiveRecord(neighbour);
  return true;
}

// Both, where they are in sets of that kind. True: one of them was.
inline bool Arena::AbsorbBoth(Block* block, Place place) noexcept {
  constexpr static Place kNowhere = Place::None;  // one branch for each neighbour: which is taken nobody can predict
  const Place* const place_before = block->prev != nullptr ? &block->prev->place : &kNowhere;
  const bool before = *place_before == place && AbsorbBefore(block);
  const Place* const place_behind = block->next != nullptr ? &block->next->place : &kNowhere;
  const bool behind = *place_behind == place && AbsorbBehind(block);
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

[[gnu::noinline]] void Arena::TraceFreed(const Block* block) const noexcept {
  if (block->stream == nullptr) return;  // told before
  Trace(TraceAction::FreeCompleted, block->address.load(std::memory_order_relaxed), block->size,
        block->requested.load(std::memory_order_relaxed), nullptr, block->stream->id);
}

[[gnu::noinline]] void Arena::CountOversize(std::int64_t by) const noexcept {
  const Held held(device->totals.lock);
  AddTo(&device->totals.oversize_allocations, by);
}

[[gnu::always_inline]] inline void Arena::SettleFree(Block* block) noexcept {
  const Place place = block->noted.load(std::memory_order_relaxed) ? PlaceOf(block) : Place::Ready;
  if (place != Place::Waiting) {
    if (environment->Traced()) [[unlikely]]
      TraceFreed(block);
    block->stream = nullptr;
    block->requested.store(0, std::memory_order_relaxed);
    if (block->has_stack) block->stack.store(nullptr, std::memory_order_relaxed);
    block->has_stack = false;
    (void)AbsorbBoth(block, place);
  }
  Enter(block, place);
}

void Arena::Settle(Block* block) noexcept { SettleFree(block); }

// Merging makes one block of many, with the latest of their numbers; each page keeps its own.
void Arena::OweOfPages(const Block* block) noexcept {
  const Segment* const segment = block->segment;
  if (segment->owed == nullptr) return;
  const std::size_t offset = block->address.load(std::memory_order_relaxed) - segment->address;
  for (std::size_t page = offset / segment->page; page * segment->page < offset + block->size; ++page)
    segment->owed[page] = std::max(segment->owed[page], block->own_sequence);
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
  if ((block->state.load(std::memory_order_relaxed) & kForeign) == 0) Owe(block, own);
  if (block->used.load(std::memory_order_relaxed)) ClaimUses(block);
  ++stamped_frees;
  stamped_bytes += block->size;
  if (environment->IsOversize(block->size)) [[unlikely]]
    CountOversize(-1);
  SettleFree(block);
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

inline bool Arena::MaySplit(const Block* block, std::size_t size) const noexcept {
  if (pool->options().no_split) [[unlikely]]
    return false;
  const bool has_large_rest = block->large & !block->segment->expandable;
  if (block->size - size < kMinBlock + has_large_rest * kSmallLimit) return false;
  const std::size_t limit = environment->options.max_split_size;
  return limit == 0 || !has_large_rest || size < limit;
}

bool Arena::ShouldSplit(const Block* block, std::size_t size) const noexcept { return MaySplit(block, size); }

void Arena::SettleUnmapped(Block* block) noexcept {
  block->mapped = false;
  block->uses.Clear();
  block->noted.store(false, std::memory_order_relaxed);
  environment->map.Remove(block);
  (void)AbsorbBoth(block, Place::Unmapped);
  Insert(block, Place::Unmapped);
}

[[gnu::always_inline]] inline Block* Arena::CutOff(Block* block, std::size_t size, Block* spare) noexcept {
  Block* const rest = spare != nullptr ? spare : TakeRecord();
  if (rest == nullptr) return nullptr;
  if (block->noted.load(std::memory_order_relaxed) && !ShareUses(block, rest)) {
    GiveRecord(rest);
    return nullptr;
  }
  rest->address.store(block->address.load(std::memory_order_relaxed) + size, std::memory_order_relaxed);
  rest->arena.store(this, std::memory_order_relaxed);  // known to others with the state that Hand gives it
  rest->size = block->size - size;
  rest->large = block->large;
  rest->mapped = block->mapped;
  rest->own_sequence = block->own_sequence;
  rest->segment = block->segment;
  rest->prev = block;
  rest->next = block->next;
  *LinkBackOf(rest->next) = rest;
  block->next = rest;
  block->size = size;
  return rest;
}

Block* Arena::SplitAt(Block* block, std::size_t size, Block* spare) noexcept { return CutOff(block, size, spare); }

[[gnu::always_inline]] inline void Arena::CutDown(Block* block, std::size_t size) noexcept {
  if (!MaySplit(block, size)) return;
  Block* const rest = CutOff(block, size, nullptr);
  if (rest == nullptr) return;
  // The block was ready, and so had taken in what was ready behind it. Whatever became ready there while the block was in nobody's set and
  // the lock was let go, did not find it.
  const bool meets_ready = rest->next != nullptr && rest->next->place == Place::Ready;
  if (meets_ready || rest->noted.load(std::memory_order_relaxed)) return Settle(rest);
  Enter(rest, Place::Ready);
}

void Arena::Split(Block* block, std::size_t size) noexcept { CutDown(block, size); }

[[gnu::always_inline]] inline void Arena::Hand(Block* block, std::size_t bytes, std::size_t size, StreamRecord* to) noexcept {
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
  if (environment->IsOversize(block->size)) [[unlikely]]
    CountOversize(1);
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

Block* Arena::CutBestFit(std::size_t bytes, std::size_t size, StreamRecord* to) noexcept {
  const std::size_t i = Index(size > kSmallLimit);
  if (returned.load(std::memory_order_relaxed) != nullptr) Collect();
  if ((waiting != nullptr || !pending[1].empty()) && IsLookDue(i != 0)) return nullptr;
  Block* const block = ready[i].AtLeast(size);
  if (block == nullptr) return nullptr;
  Leave(block);
  CutDown(block, size);
  block->given_in = 0;
  block->has_stack = false;
  Hand(block, bytes, size, to);
  Raise(&served_ready);
  return block;
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
