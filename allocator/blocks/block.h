// SPDX-License-Identifier: MIT
// block.h: a piece of a segment, and the segment; and where their records come from.
//
//   Owns      BlockStore owns all records: they are reused, never given back before it is destroyed, so a stale pointer to one is safe
//             to read.
//   Threads   Block::state by compare-and-exchange; `uses`, `recorded`, `captured` of a live block under its Editing bit; `slots` as they
//             say; `used` set with them, cleared with the block at hand; everything else under the lock of the arena, or by who took the
//             block out of circulation. BlockStore: any thread.
//   Units     bytes; `key` in units of 512 bytes.
//   Errors    Take answers nullptr when host memory ran out.
//   Faults    makes no driver calls.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "allocator/driver_scope.h"
#include "allocator/lock.h"
#include "allocator/uses/stamps.h"
#include "allocator/uses/use_set.h"

namespace cuaudit::alloc {

struct Arena;
struct Block;
struct CapturedUse;
struct PoolOptions;
struct Segment;

// Block::state: the life of the record above, what it is and what must not be overlooked when it is freed below.
inline constexpr std::uint64_t kFree = 1;      // in the arena's hands
inline constexpr std::uint64_t kLive = 2;      // a user's
inline constexpr std::uint64_t kCached = 3;    // in a thread's cache
inline constexpr std::uint64_t kReturned = 4;  // freed, on its way to the arena
inline constexpr std::uint64_t kStatusMask = 0xF;
inline constexpr std::uint64_t kHasUses = 0x10;
inline constexpr std::uint64_t kHasStreams = 0x20;  // RecordStream
inline constexpr std::uint64_t kForeign = 0x40;     // its stream is not the arena's
inline constexpr std::uint64_t kEditing = 0x80;     // somebody adds a use
inline constexpr std::uint64_t kFlagMask = 0xFF;
// The life stands above the flags: a record that is reused at the highest rate comes back to the same number after decades, not while a
// call on an earlier life is under way.
inline constexpr unsigned kLifeShift = 8;
inline constexpr std::uint64_t kOneLife = std::uint64_t{1} << kLifeShift;

// Where a free block stands; under the arena's lock.
enum class Place : std::uint8_t {
  None,      // in nobody's set: live, cached, or taken out by who is working on it
  Ready,     // nothing to wait for but the arena's own stream
  Pending,   // Reuse::Wait: whoever gets it waits
  Waiting,   // Reuse::Poll, or used in a capture: not given out
  Unmapped,  // address space only
};

// Two cache lines are all that an allocation and a free without uses touch.
struct alignas(64) Block {
  std::atomic<std::uint64_t> state{0};
  std::atomic<CUdeviceptr> address{0};  // read without a lock when a pointer is looked up
  std::atomic<Arena*> arena{nullptr};   // likewise
  std::size_t size = 0;
  std::atomic<std::size_t> requested{0};
  StreamRecord* stream = nullptr;  // that it was given out for
  std::uint32_t key = 0;           // the rounded size that it was given out for
  bool large = false;
  bool mapped = true;
  Place place = Place::None;
  bool counted_pending = false;
  std::atomic<bool> used{false};   // there are uses in the slots, perhaps
  std::atomic<bool> noted{false};  // `uses`, `recorded` or `captured` may have entries; set with them
  bool has_stack = false;
  std::uint16_t bin = 0;  // of the set that it stands in

  alignas(64) Segment* segment = nullptr;
  Block* prev = nullptr;  // by address
  Block* next = nullptr;
  Block* link = nullptr;           // the list that it stands in: returned, waiting, the store; or a set: the child before it
  Block* link_back = nullptr;      // waiting; or a set: the child behind it
  Block* parent = nullptr;         // a set
  std::uint64_t own_sequence = 0;  // work of the arena's stream on it is over when the stream's recordings up to this are
  std::uint64_t given_in = 0;      // the capture that it was given out in, as far as is known; 0: none

  UseSlots slots;
  UseSet uses;      // with room for what the slots hold, what `recorded` becomes, and one more
  UseSet recorded;  // streams of RecordStream; sequences unused
  CapturedUse* captured = nullptr;
  std::uint64_t age = 0;  // with garbage_collection_threshold: the device's searches when it became free
  std::atomic<void*> stack{nullptr};
};
static_assert(offsetof(Block, segment) == 64 && offsetof(Block, slots) == 128);

// Whether the record is the block at that address, and its state. In this order: a record that has become another block's has another
// address when its state is that one's, and a state that changes behind this is refused by the exchange that names it.
inline bool IsAt(const Block* block, CUdeviceptr address, std::uint64_t* state) noexcept {
  if (block == nullptr) return false;
  *state = block->state.load(std::memory_order_acquire);
  return block->address.load(std::memory_order_relaxed) == address;
}
// What must have room in `uses` beyond the entries there are.
inline std::uint32_t RoomBeyond(const Block* block) noexcept {
  return block->recorded.size() + 1 + static_cast<std::uint32_t>(UseSlots::kCount);
}
// Of a block that nobody else has: uses in the slots become entries of `uses`.
void ClaimUses(Block* block) noexcept;

// Segment::pages. A page in doubt counts as gone where a context was said to be lost, and is unmapped before it is mapped anew.
inline constexpr unsigned char kPageMapped = 1;
inline constexpr unsigned char kPageInDoubt = 2;        // cuMemMap failed, or cuMemUnmap twice: mapped or not, it is no memory to give out
inline constexpr unsigned char kPageHandleRefused = 4;  // cuMemRelease of its handle failed while it was mapped
inline constexpr unsigned char kPageBorrowed = 8;       // mapped, and its handle is another place's, which it leaves or not

struct Segment {
  Segment() = default;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment() {
    std::free(handles);
    std::free(pages);
    std::free(owed);
  }
  // It is these addresses, and `block` is all of them.
  void Hold(Arena* whose, Block* block, CUdeviceptr from, std::size_t bytes, bool is_large) noexcept;

  CUdeviceptr address = 0;
  std::size_t size = 0;
  Arena* arena = nullptr;
  Block* first = nullptr;
  Segment* next = nullptr;
  Segment* back = nullptr;
  bool large = false;
  bool expandable = false;
  const PoolOptions* source = nullptr;              // whose `acquire` it comes from, if there is one
  bool unusable = false;                            // its addresses have no records; waits to be given back
  Tenure tenure;                                    // not expandable
  std::size_t page = 0;                             // expandable: bytes of one physical handle
  CUmemGenericAllocationHandle* handles = nullptr;  // expandable: one per page of the range; 0: none
  unsigned char* pages = nullptr;                   // expandable: kPage... of each page
  std::uint64_t* owed = nullptr;                    // expandable, with remap_budget: of each page, as Block::own_sequence
  void* stack = nullptr;
};

class BlockStore {
 public:
  BlockStore() = default;
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;
  ~BlockStore();
  Block* Take() noexcept;
  void Give(Block* block) noexcept;
  static void Reset(Block* block) noexcept;  // as new, but for its life, so that an old state never matches again
  std::size_t made() const noexcept { return made_.load(std::memory_order_relaxed); }

 private:
  struct Chunk;
  Lock lock_;
  Block* free_ = nullptr;
  Chunk* chunks_ = nullptr;
  std::atomic<std::size_t> made_{0};
};

}  // namespace cuaudit::alloc
