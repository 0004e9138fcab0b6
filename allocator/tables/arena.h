// SPDX-License-Identifier: MIT
// arena.h: a pool, and the segments of one (device, pool, stream): splitting, merging, and who may have what.
//
//   Owns      its segments' place in the books; their memory belongs to who talks to the driver (segment_source.h).
//   Threads   `lock` guards everything but the atomics; methods that say so are called with it held. Return takes no lock.
//   Streams   never touched. What the arena's own stream did with a block needs no order for that stream's next use of it.
//   Units     bytes.
//   Errors    none: splitting that lacks host memory gives out the whole block instead.
//   Faults    makes no driver calls.
//   Source    PyTorch c10/cuda/CUDACachingAllocator.cpp: get_free_block, should_split, try_merge_blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/blocks/block.h"
#include "allocator/blocks/capture.h"
#include "allocator/blocks/free_bins.h"
#include "allocator/pool.h"
#include "allocator/tables/environment.h"
#include "allocator/trace.h"

namespace cuaudit::alloc {

// What an allocation is looking for.
struct Request {
  std::size_t bytes = 0;  // as asked for
  std::size_t size = 0;   // rounded
  bool large = false;
  StreamRecord* stream = nullptr;
  CUstream live = nullptr;    // the handle that the call was handed
  bool can_touch = false;     // it means `stream` on this thread
  std::uint64_t growths = 0;  // the arena's, before it was searched
  std::uint64_t capture = 0;  // that the stream is in, if that was asked
  bool may_be_fast = false;   // the next one need not be asked
  bool by_limit = false;      // refused by the limit, not the driver
  bool may_move = false;      // pages may come from elsewhere: Device::releasing is not held
  bool no_room = false;       // refused for want of addresses in the arena's range
  void* stack = nullptr;
};

struct Arena;

struct Pool {
  std::atomic<std::uint64_t> number{0};  // the second half of its identity
  std::atomic<const PoolOptions*> known{&kPlainOptions};
  std::atomic<int> users{1};   // from 0 only under PoolTable::lock_
  std::atomic<int> routes{0};  // under PoolTable::lock_
  std::atomic<Arena*> arenas{nullptr};
  Pool* next = nullptr;
  bool is_private = false;
  std::vector<Capture*> captures;  // that used its blocks while it was routed: references; under PoolTable::lock_

  PoolId id() const noexcept { return {0, number.load(std::memory_order_relaxed)}; }
  const PoolOptions& options() const noexcept { return *known.load(std::memory_order_acquire); }

  void ForgetCaptures() noexcept {
    for (Capture* const capture : captures) capture->Drop();
    captures.clear();
  }

  static constexpr PoolOptions kPlainOptions{};
};

struct alignas(64) Arena {
  // Set once.
  ArenaEnvironment* environment = nullptr;
  Device* device = nullptr;
  Pool* pool = nullptr;
  StreamRecord* stream = nullptr;
  std::uint32_t index = 0;
  Arena* next_all = nullptr;
  Arena* next_of_pool = nullptr;

  alignas(64) std::atomic<Block*> returned{nullptr};  // freed by whomever, not yet looked at

  std::atomic<std::uint64_t> growths{0};

  alignas(64) Lock lock{LockRank::Arena};
  FreeBins ready[2], pending[2];  // [large]
  BlockTree<false> unmapped[2];
  Block* waiting = nullptr;  // oldest first
  Block* waiting_last = nullptr;
  std::size_t waiting_count = 0;
  std::size_t looked_at = 0;      // of them, when somebody last looked
  std::size_t waiting_large = 0;  // of them, in the large pool
  Segment* segments = nullptr;
  Segment* expandable[2] = {nullptr, nullptr};
  std::uint64_t stamped_frees = 0;  // frees since the last stamp for others
  std::uint64_t stamped_bytes = 0;
  Lock growing{LockRank::Growing};  // held across the driver calls that grow it; taken before `lock`

  // Written under `lock`.
  std::atomic<std::uint64_t> served_ready{0}, served_other{0}, served_pending{0}, served_capture{0}, served_grown{0};

  // Takes the block off its user's hands: it is looked at when somebody next searches. No lock.
  void Return(Block* block) noexcept {
    block->state.store((block->state.load(std::memory_order_relaxed) & ~kStatusMask) | kReturned, std::memory_order_relaxed);
    Block* head = returned.load(std::memory_order_relaxed);
    do {
      block->link = head;
    } while (!returned.compare_exchange_weak(head, block, std::memory_order_release, std::memory_order_relaxed));
  }

  bool Init() noexcept;  // false: no host memory

  void Trace(TraceAction action, CUdeviceptr address, std::size_t size, std::size_t requested, void* stack, std::uint64_t stream_id,
             std::uint64_t other = 0, std::uint64_t sequence = 0) const noexcept;
  // `waiter` need not wait for the use of the block, since it has waited for as much already.
  void CountElided(const Block* block, const StreamRecord* waiter, const Use& use) const noexcept;
  // Whether to look at the uses of freed blocks though others may fit. Of large ones always, else larger ones are cut up meanwhile, and the
  // pieces stay; small ones are too many for that, and at most some segments of theirs are made too many. `lock` is held.
  bool IsLookDue(bool large) const noexcept {
    if (waiting_count >= looked_at + kGlance / 2) return true;
    return large && (waiting_large != 0 || (!environment->options.deterministic && !pending[1].empty()));
  }
  static constexpr std::size_t kGlance = 16;  // waiting blocks that an ordinary search looks at
  static constexpr std::size_t kEverything = ~std::size_t{0};

  // All below: `lock` is held.
  void Collect() noexcept;                                  // looks at what was returned
  void TakeBack(Block* block, std::uint64_t own) noexcept;  // one block; `own`: the number that ends the stream's work until now
  // The arena's stream may be at work on the block until its recordings up to `sequence` are over.
  void Owe(Block* block, std::uint64_t sequence) noexcept {
    block->own_sequence = sequence;
    if (environment->moves_pages) [[unlikely]]
      OweOfPages(block);
  }
  void Settle(Block* block) noexcept;  // a free block in nobody's set gets its place, merged with its neighbours
  // Blocks that wait, as far as is known without asking the driver; `limit` of those that still must are looked at.
  void Resettle(std::size_t limit) noexcept;
  // Pending blocks whose uses are over, likewise.
  void Promote(std::size_t limit) noexcept;
  void AddSegment(Segment* segment) noexcept;
  void RemoveSegment(Segment* segment) noexcept;
  void Insert(Block* block, Place place) noexcept;
  void Remove(Block* block) noexcept;
  void SettleUnmapped(Block* block) noexcept;
  Block* FindIn(const FreeBins* set, const Request& request) const noexcept;
  bool MayServe(const Block* block, const Request& request) const noexcept;
  Block* FindImplied(const Request& request) const noexcept;
  bool ShouldSplit(const Block* block, std::size_t size) const noexcept;
  // Cuts what is too much off a block in nobody's set; the rest is free and has its place. The block stays in nobody's set.
  void Split(Block* block, std::size_t size) noexcept;
  Block* SplitAt(Block* block, std::size_t size, Block* spare = nullptr) noexcept;  // the rest, in nobody's set; nullptr: no host memory
  void GiveOut(Block* block, const Request& request) noexcept;
  void GiveOut(Block* block, std::size_t bytes, std::size_t size, StreamRecord* to) noexcept;  // outside captures, untraced
  // Merges pending blocks with ready neighbours; true when that made any.
  bool MergeMixed() noexcept;
  bool IsOver(const Use& use) const noexcept;
  void Recognize(Block* block) const noexcept;  // uses by what a stream was in a capture, as uses by the stream, where that is known

  // What a request that asks for nothing first is given of what is ready, in nobody's set any more: the best fit, cut to `size`. nullptr:
  // somebody has to look further.
  Block* CutBestFit(std::size_t bytes, std::size_t size, StreamRecord* to) noexcept;

  // Records for blocks; some are kept here, so that arenas do not meet at the store.
  Block* TakeRecord() noexcept;
  void GiveRecord(Block* block) noexcept;

 private:
  // Where `next` keeps who stands before it. Nobody's where there is none: what is unpredictable takes no branch.
  Block** LinkBackOf(Block* next) noexcept { return next != nullptr ? &next->prev : &nobodys_; }

  Block* nobodys_ = nullptr;
  Block* records_ = nullptr;
  std::size_t record_count_ = 0;
  static void OweOfPages(const Block* block) noexcept;
  void TraceFreed(const Block* block) const noexcept;
  void CountOversize(std::int64_t by) const noexcept;
  void Enter(Block* block, Place place) noexcept;
  void Leave(Block* block) noexcept;
  void SettleFree(Block* block) noexcept;
  bool MaySplit(const Block* block, std::size_t size) const noexcept;
  bool ShareUses(const Block* block, Block* rest) noexcept;
  Block* CutOff(Block* block, std::size_t size, Block* spare) noexcept;
  void CutDown(Block* block, std::size_t size) noexcept;
  bool TakeIn(Block* block, Block* neighbour) noexcept;
  bool AbsorbBefore(Block* block) noexcept;
  bool AbsorbBehind(Block* block) noexcept;
  bool AbsorbBoth(Block* block, Place place) noexcept;
  void InsertElsewhere(Block* block, Place place) noexcept;
  void RemoveElsewhere(Block* block, Place place) noexcept;
  Place PlaceOf(Block* block) noexcept;
  void Hand(Block* block, std::size_t bytes, std::size_t size, StreamRecord* to) noexcept;
  void CountPending(Block* block, bool is_pending) noexcept;
};

// Of a counter that is written under a lock.
inline void Raise(std::atomic<std::uint64_t>* counter) noexcept {
  counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline std::size_t Index(bool large) noexcept { return large ? 1 : 0; }

}  // namespace cuaudit::alloc
