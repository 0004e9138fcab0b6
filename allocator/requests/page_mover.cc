// SPDX-License-Identifier: MIT
#include <algorithm>

#include "allocator/driver_scope.h"
#include "allocator/requests/segment_source.h"
#include "allocator/tables/pool_table.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {
namespace {

using std::chrono::steady_clock;

// Unused time of so long ago does not count: else a program that computed for an hour could spend minutes on moves.
constexpr steady_clock::duration kLongestCredit = std::chrono::milliseconds(100);
// Below an eleventh more than the most that was ever allocated, new memory is taken: most fragments find a use by themselves, and what
// moved to and fro otherwise stays.
constexpr std::size_t kSlackDivisor = 11;

// Whose pages may come and go: no graph has its addresses, no user gave its memory, and it has a range of pages.
bool MayMove(const Arena* arena) noexcept {
  return !arena->pool->is_private && arena->pool->options().acquire == nullptr && arena->stream->scope == Scope::Stream;
}

struct Run {
  std::size_t first = 0;
  std::size_t count = 0;
};

// The highest row of at most `wanted` whole pages of the block that have a handle and on which no work can be, as far as the stream's
// recordings tell. `*owed`: the number of the recording that would tell of a page which none has told of.
Run FindRun(const Block* block, const StreamRecord* stream, std::size_t wanted, std::uint64_t* owed) noexcept {
  const Segment* const segment = block->segment;
  const std::size_t offset = block->address.load(std::memory_order_relaxed) - segment->address;
  const std::size_t lowest = (offset + segment->page - 1) / segment->page;
  const bool is_retired = stream->retired.load(std::memory_order_acquire);
  const std::uint64_t begun = stream->begun.load(std::memory_order_acquire);
  Run run;
  for (std::size_t page = (offset + block->size) / segment->page; page-- > lowest && run.count < wanted;) {
    const std::uint64_t sequence = is_retired ? std::min(segment->owed[page], begun) : segment->owed[page];
    if (segment->pages[page] != kPageMapped) {  // a release of its handle failed, and may have been done
      if (run.count != 0) break;
      continue;
    }
    if (stream->IsOver(sequence)) {
      run = {page, run.count + 1};
    } else if (run.count != 0) {
      break;
    } else if (sequence > begun) {
      *owed = std::max(*owed, sequence);
    }
  }
  return run;
}

// Those pages of a free block in nobody's set; the rest goes back to one. nullptr: there is no host memory; the block is in nobody's set.
Block* CutPages(Arena* arena, Block* block, const Run& run) noexcept {
  const Segment* const segment = block->segment;
  const std::size_t before = segment->address + run.first * segment->page - block->address.load(std::memory_order_relaxed);
  const std::size_t bytes = run.count * segment->page;
  Block* behind = nullptr;
  if (before + bytes < block->size) {
    behind = arena->SplitAt(block, before + bytes);
    if (behind == nullptr) return nullptr;
  }
  Block* const pages = before != 0 ? arena->SplitAt(block, before) : block;
  if (behind != nullptr) arena->Settle(behind);
  if (pages == nullptr) return nullptr;
  if (pages != block) arena->Settle(block);
  return pages;
}

}  // namespace

bool PageMover::IsDue(const Arena* taker, std::size_t requested, std::size_t bytes) noexcept {
  if (!env_.moves_pages || !MayMove(taker)) return false;
  Device* const device = taker->device;
  caches_.FoldAll(device);
  std::size_t most = 0;
  {
    const Held held(device->totals.lock);
    const std::int64_t now = device->totals.current[kBytes][0] + static_cast<std::int64_t>(requested);
    most = static_cast<std::size_t>(std::max(now, device->totals.peak[kBytes][0]));
  }
  if (device->reserved.load(std::memory_order_relaxed) + bytes <= most + most / kSlackDivisor) return false;
  const steady_clock::time_point now = steady_clock::now();
  const steady_clock::duration passed = std::min(now - device->moving_credited, kLongestCredit);
  device->moving_credited = now;
  const auto earned = std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(passed) * env_.options.remap_budget);
  const auto most_earned = std::chrono::duration_cast<steady_clock::duration>(kLongestCredit * env_.options.remap_budget);
  device->moving_credit = std::min(device->moving_credit + earned, most_earned);
  return device->moving_credit.count() > 0 || env_.options.remap_budget >= 1.0;
}

CUresult PageMover::Gather(Arena* taker, const Segment* range, std::size_t wanted, PageLots* out) noexcept {
  CUresult result = TakeFrom(taker, range, wanted, out);
  for (Arena* arena = arenas_.First(); arena != nullptr && result == CUDA_SUCCESS && out->pages() < wanted; arena = arena->next_all) {
    if (arena != taker && arena->device == taker->device && MayMove(arena)) result = TakeFrom(arena, range, wanted, out);
  }
  if (result != CUDA_SUCCESS) Settle(out);
  return result;
}

CUresult PageMover::TakeFrom(Arena* arena, const Segment* range, std::size_t wanted, PageLots* out) noexcept {
  StreamRecord* const stream = arena->stream;
  caches_.Empty(arena);
  {
    const Held held(arena->lock);
    arena->Collect();
  }
  CUresult result = search_.PollWaiting(arena, Arena::kGlance);
  if (result == CUDA_SUCCESS) result = Poll(stream);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t owed = TakeOver(arena, range, wanted, out);
  if (owed == 0 || out->pages() == wanted) return CUDA_SUCCESS;
  // Nothing recorded tells of what was freed last. A stream is touched in calls that name it alone, unless it is sure to live until it is
  // retired: then at once, else its own next request records.
  const bool lives = env_.options.trust_stream_handles && !stream->retired.load(std::memory_order_acquire);
  if (!lives || stream->is_default || stream->word != nullptr) {
    stream->Want(owed);
    return CUDA_SUCCESS;
  }
  result = Record(stream);
  if (result == CUDA_SUCCESS) result = Poll(stream);
  if (result == CUDA_SUCCESS) (void)TakeOver(arena, range, wanted, out);
  return result;
}

// On a stream of anybody's, unless it is being captured. A capture may begin at this very moment: so it is asked for behind the recording,
// too, and one that may be the graph's counts as failed.
CUresult PageMover::Record(StreamRecord* stream) noexcept {
  CUstream live = stream->handle;
  CurrentContext current(env_.driver, stream->context, true);
  if (current.result() != CUDA_SUCCESS) return current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = env_.driver.StreamIsCapturing(live, &status);
  if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) {
    Recording recording;
    result = stream->Begin(env_.driver, &recording);
    if (result == CUDA_SUCCESS) {
      result = env_.driver.EventRecord(recording.event, live);
      if (result == CUDA_SUCCESS) result = env_.driver.StreamIsCapturing(live, &status);
      if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) {
        (void)stream->Sent(recording);
      } else {
        stream->Cancel(recording);
      }
    }
  }
  const CUresult left = current.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

// As much of the stream's recordings as is over.
CUresult PageMover::Poll(StreamRecord* stream) noexcept {
  const std::uint64_t begun = stream->begun.load(std::memory_order_acquire);
  return stream->IsOver(begun) ? CUDA_SUCCESS : stream->PollUpTo(env_.driver, begun);
}

// Of the range's kind first, then of the other if its pages are as large. The number of the recording that would tell of more; 0: none
// would.
std::uint64_t PageMover::TakeOver(Arena* arena, const Segment* range, std::size_t wanted, PageLots* out) noexcept {
  std::uint64_t owed = 0;
  const Held held(arena->lock);
  for (const bool large : {range->large, !range->large}) TakeOfKind(arena, large, range->page, wanted, out, &owed);
  return owed;
}

// Of the largest blocks first: fewer places to be unmapped. The arena's lock is held.
void PageMover::TakeOfKind(Arena* arena, bool large, std::size_t page, std::size_t wanted, PageLots* out, std::uint64_t* owed) noexcept {
  const Segment* const from = arena->expandable[Index(large)];
  if (from == nullptr || from->page != page) return;
  FreeBins& set = arena->ready[Index(large)];
  Block* aside = nullptr;
  std::size_t looks = Arena::kGlance;
  while (out->pages() < wanted && looks != 0) {
    Block* const block = set.Last();
    if (block == nullptr || block->size < page) break;
    arena->Remove(block);
    Block* pages = nullptr;
    if (block->segment == from) {
      const Run run = FindRun(block, arena->stream, wanted - out->pages(), owed);
      if (run.count != 0) pages = CutPages(arena, block, run);
    }
    if (pages != nullptr) {
      out->Add(pages);
      continue;
    }
    --looks;
    block->link = aside;
    aside = block;
  }
  while (aside != nullptr) {
    Block* const block = aside;
    aside = block->link;
    block->link = nullptr;
    arena->Settle(block);
  }
}

void PageMover::Settle(PageLots* lots) noexcept {
  for (Block* block = lots->TakeBlock(); block != nullptr; block = lots->TakeBlock()) {
    Arena* const arena = block->arena.load(std::memory_order_relaxed);
    const Held held(arena->lock);
    arena->Settle(block);
  }
}

CUresult PageMover::Leave(PageLots* lots) noexcept {
  CUresult first = CUDA_SUCCESS;
  for (Block* block = lots->TakeBlock(); block != nullptr; block = lots->TakeBlock()) {
    Arena* const arena = block->arena.load(std::memory_order_relaxed);
    Device* const device = arena->device;
    Segment* const segment = block->segment;
    const CUdeviceptr address = block->address.load(std::memory_order_relaxed);
    const std::size_t page = (address - segment->address) / segment->page;
    const std::size_t count = block->size / segment->page;
    // The addresses are ours, and to unmap what is not mapped is no error: so a second try does no harm, and tells.
    CUresult result = env_.driver.MemUnmap(address, block->size);
    if (first == CUDA_SUCCESS) first = result;
    if (result != CUDA_SUCCESS) result = env_.driver.MemUnmap(address, block->size);
    if (result != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
    for (std::size_t i = page; i < page + count; ++i) {
      segment->handles[i] = 0;
      segment->pages[i] = result == CUDA_SUCCESS ? 0 : kPageInDoubt;
    }
    device->moved.fetch_add(count, std::memory_order_relaxed);
    device->moved_bytes.fetch_add(block->size, std::memory_order_relaxed);
    device->CountSegments(segment->large, 0, -static_cast<std::int64_t>(block->size));
    if (env_.Traced()) arena->Trace(TraceAction::SegmentUnmap, address, block->size, 0, nullptr, arena->stream->id);
    const Held held(arena->lock);
    arena->SettleUnmapped(block);
  }
  return first;
}

}  // namespace cuaudit::alloc
