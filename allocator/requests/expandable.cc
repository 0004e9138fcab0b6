// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <optional>

#include "allocator/driver_scope.h"
#include "allocator/requests/segment_source.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kLeastRange = std::size_t{64} << 20;

}  // namespace

// Address space for all that one pool kind of an arena can ever need: an eighth more than the device has, or as much as is granted.
CUresult SegmentSource::MakeRange(Arena* arena, bool large) noexcept {
  Device* const device = arena->device;
  const std::size_t page = !large ? kSmallSegment : env_.options.page_size != 0 ? env_.options.page_size : env_.options.large_segment_size;
  std::unique_ptr<Segment> segment(new (std::nothrow) Segment);
  Block* const block = segment == nullptr ? nullptr : env_.store.Take();
  if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::size_t bytes = (device->total + device->total / 8 + page - 1) / page * page;
  CUdeviceptr address = 0;
  CUresult result = env_.driver.MemAddressReserve(&address, bytes, kRoundLarge, 0, 0);
  while (result == CUDA_ERROR_OUT_OF_MEMORY && bytes / 2 >= kLeastRange) {
    bytes = bytes / 2 / page * page;
    result = env_.driver.MemAddressReserve(&address, bytes, kRoundLarge, 0, 0);
  }
  if (result != CUDA_SUCCESS) {
    env_.store.Give(block);
    return result;
  }
  segment->handles = static_cast<CUmemGenericAllocationHandle*>(std::calloc(bytes / page, sizeof(CUmemGenericAllocationHandle)));
  segment->pages = static_cast<unsigned char*>(std::calloc(bytes / page, 1));
  segment->expandable = true;
  segment->page = page;
  if (env_.moves_pages) segment->owed = static_cast<std::uint64_t*>(std::calloc(bytes / page, sizeof(std::uint64_t)));
  segment->unusable = segment->handles == nullptr || segment->pages == nullptr || (env_.moves_pages && segment->owed == nullptr);
  block->mapped = false;
  Segment* const added = segment.release();
  added->Hold(arena, block, address, bytes, large);
  device->CountSegments(large, 1, 0);
  {
    const Held held(arena->lock);
    arena->AddSegment(added);
    if (!added->unusable) {
      arena->expandable[Index(large)] = added;
      arena->Insert(block, Place::Unmapped);
    }
  }
  if (!added->unusable) return CUDA_SUCCESS;
  (void)DropRange(added);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// One page; false: it stays for another try. Neither its memory nor its mapping is a context's: that one is said to be lost ends neither,
// but nobody waits for a mapping then, nor Close for the memory. `*first` is the first error; that call may have been done all the same.
bool SegmentSource::DropPage(Segment* segment, std::size_t page, CUresult* first) noexcept {
  Device* const device = segment->arena->device;
  unsigned char& state = segment->pages[page];
  CUmemGenericAllocationHandle& handle = segment->handles[page];
  if ((state & kPageBorrowed) != 0) {
    handle = 0;
    state = kPageMapped;
  }
  const auto failed = [first](CUresult result) {
    if (result != CUDA_SUCCESS && *first == CUDA_SUCCESS) *first = result;
    return result != CUDA_SUCCESS && !driver::IsSticky(result);
  };
  // Before it is unmapped: as long as the mapping keeps the memory, its number cannot become other memory's, and may be released again.
  if (handle != 0) {
    const bool is_mapped = (state & kPageMapped) != 0;
    bool was_tried = (state & kPageHandleRefused) != 0;
    const auto release = [&] {
      const CUresult result = env_.driver.MemRelease(handle);
      const bool was_done = was_tried && result == CUDA_ERROR_INVALID_VALUE;  // the last time
      was_tried = true;
      return was_done ? CUDA_SUCCESS : result;
    };
    CUresult result = release();
    bool stays = failed(result);
    if (is_mapped && driver::IsSticky(result)) {
      result = release();
      stays = failed(result) || (result != CUDA_SUCCESS && !env_.closed.load(std::memory_order_relaxed));
    }
    (result == CUDA_SUCCESS ? device->frees : device->refused).fetch_add(1, std::memory_order_relaxed);
    if (is_mapped && stays) {
      state |= kPageHandleRefused;
      return false;
    }
    handle = 0;
    state &= static_cast<unsigned char>(~kPageHandleRefused);
  }
  if (state == 0) return true;
  // The addresses are ours, and to unmap what is not mapped is no error: so a second try does no harm, and tells.
  const CUdeviceptr address = segment->address + page * segment->page;
  CUresult result = env_.driver.MemUnmap(address, segment->page);
  bool stays = failed(result);
  if (result != CUDA_SUCCESS) {
    result = env_.driver.MemUnmap(address, segment->page);
    stays = failed(result);
  }
  state = result == CUDA_SUCCESS ? 0 : kPageInDoubt;
  if (result != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
  return !stays;
}

// Pages `first` to `first + count`. Stops at the first that stays; `*done` pages are gone. The first error.
CUresult SegmentSource::UnmapSpan(Segment* segment, std::size_t first, std::size_t count, std::size_t* done) noexcept {
  CUresult error = CUDA_SUCCESS;
  for (*done = 0; *done < count && DropPage(segment, first + *done, &error);) ++*done;
  return error;
}

// Memory behind an unmapped block, in nobody's set, of whole pages. All of it or none; what cannot be undone is used by the next try. The
// pages of `moved`, of which there are no more than the block needs, are mapped here, too; they are where they were until they leave.
CUresult SegmentSource::MapPages(Segment* segment, Block* block, const PageLots& moved) noexcept {
  Device* const device = segment->arena->device;
  const CUdeviceptr address = block->address.load(std::memory_order_relaxed);
  const std::size_t first = (address - segment->address) / segment->page;
  const std::size_t count = block->size / segment->page;
  if (!env_.map.Prepare(address, block->size, segment->large)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device->ordinal;
  RelaxedCapture relaxed(env_.driver);
  CUresult result = relaxed.result();
  if (result != CUDA_SUCCESS) return result;
  PageLots::Cursor other(moved);
  for (std::size_t page = first; page < first + count && result == CUDA_SUCCESS; ++page) {
    if ((segment->pages[page] & kPageMapped) != 0) continue;
    if (segment->pages[page] == kPageInDoubt) (void)DropPage(segment, page, &result);
    if (segment->pages[page] != 0) break;
    result = CUDA_SUCCESS;  // of a call that was done, and the memory is there
    const bool is_borrowed = segment->handles[page] == 0 && !other.at_end();
    if (is_borrowed) {
      segment->handles[page] = other.handle();
      other.Advance();
    } else if (segment->handles[page] == 0) {
      CUmemGenericAllocationHandle handle = 0;
      result = env_.driver.MemCreate(&handle, segment->page, &properties, 0);
      if (result != CUDA_SUCCESS) break;
      segment->handles[page] = handle;
      device->allocs.fetch_add(1, std::memory_order_relaxed);
    }
    result = env_.driver.MemMap(segment->address + page * segment->page, segment->page, 0, segment->handles[page], 0);
    segment->pages[page] = result == CUDA_SUCCESS ? kPageMapped : kPageInDoubt;  // what failed may have been done all the same
    if (is_borrowed && result == CUDA_SUCCESS) segment->pages[page] |= kPageBorrowed;
    if (is_borrowed && result != CUDA_SUCCESS) segment->handles[page] = 0;
  }
  if (result == CUDA_SUCCESS) {
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    result = env_.driver.MemSetAccess(address, block->size, &access, 1);
  }
  CUresult left = CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) left = relaxed.Leave();
  if (result == CUDA_SUCCESS && left == CUDA_SUCCESS) {
    for (std::size_t page = first; page < first + count; ++page) segment->pages[page] &= static_cast<unsigned char>(~kPageBorrowed);
    return CUDA_SUCCESS;
  }
  for (std::size_t page = first; page < first + count;) {
    std::size_t done = 0;
    (void)UnmapSpan(segment, page, first + count - page, &done);
    page += done + 1;
  }
  return result != CUDA_SUCCESS ? result : left;
}

// Memory behind `room`, in nobody's set: pages that moved there, if moves are due, and new ones. `*error`: there is memory, and what was
// left behind could not be unmapped at the first try.
CUresult SegmentSource::FillPages(Arena* arena, Request* request, Block* room, CUresult* error) noexcept {
  Device* const device = arena->device;
  Segment* const segment = room->segment;
  PageLots moved;
  std::unique_lock<Lock> releasing(device->releasing, std::defer_lock);
  std::optional<PageMover::Timed> timed;
  if (request->may_move && env_.moves_pages) {
    releasing.lock();
    if (mover_.IsDue(arena, request->size, room->size)) {
      timed.emplace(device);
      const std::size_t first = (room->address.load(std::memory_order_relaxed) - segment->address) / segment->page;
      const CUmemGenericAllocationHandle* const handles = segment->handles + first;
      const auto wanted = std::count(handles, handles + room->size / segment->page, CUmemGenericAllocationHandle{0});
      const CUresult result = mover_.Gather(arena, segment, static_cast<std::size_t>(wanted), &moved);
      if (result != CUDA_SUCCESS) return result;
    }
    if (moved.empty()) {
      timed.reset();
      releasing.unlock();
    }
  }
  const std::size_t bytes = room->size - moved.pages() * segment->page;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (!device->Reserve(bytes)) {
    request->by_limit = true;
  } else if ((result = MapPages(segment, room, moved)) != CUDA_SUCCESS) {
    device->Unreserve(bytes);
  }
  if (result == CUDA_SUCCESS) {
    *error = mover_.Leave(&moved);
  } else {
    mover_.Settle(&moved);
  }
  return result;
}

// As AddSegment, where the fewest pages are missing: behind the free memory that nearly does. Of several such places the lowest.
CUresult SegmentSource::Extend(Arena* arena, Request* request, Block** out) noexcept {
  const std::size_t i = Index(request->large);
  Device* const device = arena->device;
  if (arena->expandable[i] == nullptr) {
    const CUresult result = MakeRange(arena, request->large);
    if (result != CUDA_SUCCESS) return result;
  }
  Segment* const segment = arena->expandable[i];
  Block* room = nullptr;
  Block* before = nullptr;
  {
    const Held held(arena->lock);
    std::size_t fewest = 0;
    for (Block* block = arena->unmapped[i].First(); block != nullptr && fewest != segment->page; block = BlockTree<false>::Next(block)) {
      Block* const previous = block->prev;
      Block* const ready = previous != nullptr && previous->place == Place::Ready ? previous : nullptr;
      const std::size_t have = ready == nullptr ? 0 : ready->size;
      const std::size_t needed =
          have >= request->size ? segment->page : (request->size - have + segment->page - 1) / segment->page * segment->page;
      if (block->size < needed || (room != nullptr && needed >= fewest)) continue;
      room = block;
      before = ready;
      fewest = needed;
    }
    if (room != nullptr) {
      arena->Remove(room);
      if (room->size > fewest) {
        Block* const rest = arena->SplitAt(room, fewest);
        if (rest == nullptr) {
          arena->Insert(room, Place::Unmapped);
          return CUDA_ERROR_OUT_OF_MEMORY;
        }
        arena->Insert(rest, Place::Unmapped);
      }
      if (before != nullptr) arena->Remove(before);  // so that nobody takes it meanwhile
    }
  }
  request->no_room = room == nullptr;
  if (room == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t bytes = room->size;
  CUresult error = CUDA_SUCCESS;
  const CUresult result = FillPages(arena, request, room, &error);
  const Held held(arena->lock);
  if (before != nullptr) arena->Settle(before);  // its neighbour on the other side may have been freed meanwhile
  if (result != CUDA_SUCCESS) {
    arena->SettleUnmapped(room);
    return result;
  }
  device->CountSegments(request->large, 0, static_cast<std::int64_t>(bytes));
  if (env_.Traced())
    arena->Trace(TraceAction::SegmentMap, room->address.load(std::memory_order_relaxed), bytes, 0, request->stack, arena->stream->id);
  room->mapped = true;
  arena->Settle(room);
  ++arena->growths;
  if (error != CUDA_SUCCESS) return error;  // the caller must hear of it: what was mapped is cached
  Block* const block = arena->FindIn(arena->ready, *request);
  if (block == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;  // merging lacked host memory
  arena->Remove(block);
  arena->Split(block, request->size);
  arena->GiveOut(block, *request);
  Raise(&arena->served_grown);
  *out = block;
  return CUDA_SUCCESS;
}

// The whole pages of a free block in nobody's set, whose uses by other streams are over; the rest stays free.
CUresult SegmentSource::UnmapPages(Block* block) noexcept {
  Arena* const arena = block->arena;
  Device* const device = arena->device;
  Segment* const segment = block->segment;
  Block* const spare = env_.store.Take();
  std::size_t first = 0;
  std::size_t count = 0;
  {
    const Held held(arena->lock);
    const std::size_t offset = block->address.load(std::memory_order_relaxed) - segment->address;
    first = (offset + segment->page - 1) / segment->page;
    const std::size_t end = (offset + block->size) / segment->page;
    count = end - std::min(first, end);
    Block* whole = block;
    if (spare != nullptr && count != 0 && offset % segment->page != 0) {
      whole = arena->SplitAt(block, first * segment->page - offset);
      if (whole != nullptr) arena->Settle(block);
    }
    if (spare == nullptr || whole == nullptr || count == 0) {
      arena->Settle(block);
      if (spare != nullptr) env_.store.Give(spare);
      return count == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    block = whole;
    if (block->size > count * segment->page) {
      Block* const after = arena->SplitAt(block, count * segment->page);
      if (after == nullptr) {
        arena->Settle(block);
        env_.store.Give(spare);
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      arena->Settle(after);
    }
  }
  std::size_t done = 0;
  RelaxedCapture relaxed(env_.driver);
  CUresult result = relaxed.result();
  bool settled = false;
  if (result == CUDA_SUCCESS) result = synchronizer_.SettleUse(arena->stream, block->own_sequence, arena, &settled);
  if (result == CUDA_SUCCESS && settled) result = UnmapSpan(segment, first, count, &done);
  const CUresult left = relaxed.Leave();
  if (done != 0) {
    const std::size_t bytes = done * segment->page;
    if (env_.Traced())
      arena->Trace(TraceAction::SegmentUnmap, block->address.load(std::memory_order_relaxed), bytes, 0, nullptr, arena->stream->id);
    device->Unreserve(bytes);
    device->CountSegments(segment->large, 0, -static_cast<std::int64_t>(bytes));
  }
  const Held held(arena->lock);
  if (done == 0 && (segment->pages[first] & kPageMapped) != 0) {
    arena->Settle(block);
    env_.store.Give(spare);
    return env_.Note(result);
  }
  // A page that may be mapped or not is no memory any more: it is mapped anew before it is used.
  const std::size_t gone = done + (done < count && segment->pages[first + done] == kPageInDoubt ? 1 : 0);
  if (gone > done) {
    device->Unreserve(segment->page);
    device->CountSegments(segment->large, 0, -static_cast<std::int64_t>(segment->page));
  }
  if (gone < count) {
    Block* const rest = arena->SplitAt(block, gone * segment->page, spare);
    if (rest != nullptr) arena->Settle(rest);
  } else {
    env_.store.Give(spare);
  }
  arena->SettleUnmapped(block);
  return result != CUDA_SUCCESS ? env_.Note(result) : left;
}

// All of a range, whatever is in it, when its uses are over: cuMemUnmap waits for nothing. The addresses are freed once: refused or done,
// nobody can say by the next try whose they are.
CUresult SegmentSource::DropRange(Segment* segment) noexcept {
  Device* const device = segment->arena->device;
  CUresult first = CUDA_SUCCESS;
  bool all_gone = true;
  if (!segment->unusable) {
    const std::size_t pages = segment->size / segment->page;
    const std::uint64_t last = segment->arena->stream->begun.load(std::memory_order_acquire) + 1;
    first = segment->arena->stream->Synchronize(env_.driver, last);
    for (Block* block = segment->first; block != nullptr; block = block->next) {
      if (block->used.load(std::memory_order_relaxed)) ClaimUses(block);
      for (const Use& use : block->uses.entries()) {
        if (first == CUDA_SUCCESS) first = use.stream->Synchronize(env_.driver, use.sequence);
      }
    }
    if (first != CUDA_SUCCESS && !driver::IsSticky(first)) {
      device->refused.fetch_add(1, std::memory_order_relaxed);
      return first;
    }
    for (std::size_t page = 0; page < pages;) {
      std::size_t done = 0;
      const CUresult result = UnmapSpan(segment, page, pages - page, &done);
      if (first == CUDA_SUCCESS) first = result;
      page += done + 1;
      all_gone = all_gone && page > pages;
    }
  }
  if (!all_gone) return first;
  const CUresult freed = env_.driver.MemAddressFree(segment->address, segment->size);
  if (first == CUDA_SUCCESS) first = freed;
  if (freed != CUDA_SUCCESS && !driver::IsSticky(freed)) device->refused.fetch_add(1, std::memory_order_relaxed);
  std::size_t bytes = 0;
  for (const Block* block = segment->first; block != nullptr; block = block->next) bytes += block->mapped ? block->size : 0;
  device->Unreserve(bytes);
  device->CountSegments(segment->large, 0, -static_cast<std::int64_t>(bytes));
  ForgetSegment(segment);
  return first;
}

}  // namespace cuaudit::alloc
