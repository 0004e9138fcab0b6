// SPDX-License-Identifier: MIT
#include <algorithm>

#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kCandidates = 8;  // pending blocks whose debts are compared
constexpr std::uint64_t kFreesPerStamp = 64;
constexpr std::uint64_t kBytesPerStamp = std::uint64_t{64} << 20;
constexpr std::uint32_t kTurnsPerFold = 256;

}  // namespace

// The default streams' handles mean streams of the current context.
CUresult Core::AllocateSlow(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  *out = 0;
  if (stream == nullptr || !stream->is_default || stream->device == nullptr || bytes == 0 || Forked())
    return Serve(bytes, stream, live, out);
  CurrentContext current(driver, stream->context);
  if (current.result() != CUDA_SUCCESS) return Note(current.result());
  const CUresult result = Serve(bytes, stream, live, out);
  const CUresult left = current.Leave();
  if (result != CUDA_SUCCESS || left == CUDA_SUCCESS) return result;
  if (*out != 0) (void)Free(*out);
  *out = 0;
  return Note(left);
}

CUresult Core::Serve(std::size_t bytes, StreamRecord* stream, CUstream live, CUdeviceptr* out) noexcept {
  CUresult error = Usable("Allocate");
  if (error != CUDA_SUCCESS) return error;
  if (bytes == 0) return CUDA_SUCCESS;
  if (bytes > kTooLarge) return Refuse(CUDA_ERROR_INVALID_VALUE, "Allocate: %zu bytes: at most 2^60 are possible", bytes);
  if (stream == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "Allocate: an empty StreamRef: Identify makes one");
  if (stream->device == nullptr) return Refuse(CUDA_ERROR_INVALID_CONTEXT, "Allocate: the stream's context is none of the allocator's");
  Device* const device = stream->device;

  Request request;
  request.bytes = bytes;
  request.size = Round(bytes);
  request.large = request.size > kSmallLimit;
  request.stream = stream;
  request.live = live;
  request.can_touch = !stream->own_thread || live == CU_STREAM_PER_THREAD;
  request.stack = CaptureStack();
  ThreadCache* const cache = caches.Mine();
  const std::uint64_t noted = streams.captures_noted();
  Pool* const pool = pools.RouteOf(device, stream);
  if ((error = LookAtCapture(pool, &request)) != CUDA_SUCCESS) return Note(error);
  stream = request.stream;
  Arena* const arena = arenas.Of(device, pool, stream);
  if (arena == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "Allocate: no host memory");
  if (request.may_be_fast && pool == &pools.shared) streams.EnterFastPath(stream, arena, noted);
  if (cache != nullptr) cache->latest.asked_ago = 0;
  request.growths = arena->growths.load(std::memory_order_acquire);

  Counters* const counters = cache == nullptr ? nullptr : cache->CountersOf(device->index);
  Magazine* const magazine = counters == nullptr || Traced() ? nullptr : cache->FindOrMake(arena->index);
  Block* block = nullptr;
  if (magazine != nullptr && !magazine->is_passed_by() && request.size < (std::size_t{1} << 40)) {
    block = magazine->Take(static_cast<std::uint32_t>(request.size / kMinBlock));
    if (block == nullptr) {
      magazine->Empty([arena](Block* kept) { arena->Return(kept); });
      magazine->NoteEmptied();
    }
  }
  if (block != nullptr) {
    block->state.store(((block->state.load(std::memory_order_relaxed) & ~kFlagMask) + kOneLife) | kLive, std::memory_order_release);
    block->requested.store(bytes, std::memory_order_relaxed);
    block->given_in = request.capture;
  }
  if (block == nullptr) error = StampForOthers(arena, request);
  if (block == nullptr && error == CUDA_SUCCESS) block = TakeReady(arena, request, false, &error);
  if (block == nullptr && error == CUDA_SUCCESS) block = TakeReady(arena, request, true, &error);
  if (block == nullptr && error == CUDA_SUCCESS) block = TakeCaptured(arena, request, &error);
  if (block == nullptr && error == CUDA_SUCCESS) block = TakeOther(arena, request, &error);
  if (block == nullptr && error == CUDA_SUCCESS) block = TakePending(arena, request, &error);
  if (block == nullptr && error == CUDA_SUCCESS) error = Grow(arena, &request, &block);
  if (block == nullptr) return Note(error);

  caches.CountAllocated(device, block, bytes);
  if (counters != nullptr && ++cache->slow_turns % kTurnsPerFold == 0) {
    const Held held(device->totals.lock);
    device->totals.Fold(counters);
  }
  *out = block->address.load(std::memory_order_relaxed);
  if (Traced()) arena->Trace(TraceAction::Alloc, *out, block->size, bytes, request.stack, stream->id);
  return CUDA_SUCCESS;
}

// So that other streams can be given what this one freed, without touching it later.
CUresult Core::StampForOthers(Arena* arena, const Request& request) noexcept {
  StreamRecord* const stream = request.stream;
  bool due = stream->IsStampDue();
  if (options.cross_stream != CrossStream::Never) {
    const Held held(arena->lock);
    arena->Collect();
    due = due || arena->stamped_frees >= kFreesPerStamp || arena->stamped_bytes >= kBytesPerStamp;
    if (due) arena->stamped_frees = arena->stamped_bytes = 0;
  }
  if (!due || !request.can_touch || request.capture != 0) return CUDA_SUCCESS;
  CurrentContext current(driver, stream->context, true);
  if (current.result() != CUDA_SUCCESS) return current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = driver.StreamIsCapturing(request.live, &status);
  std::uint64_t sequence = 0;
  if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) result = stream->Record(driver, request.live, &sequence);
  const CUresult left = current.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

// Looks once at each stream that blocks wait for, or that whoever gets them would have to wait for.
CUresult Core::PollWaiting(Arena* arena, std::size_t limit) noexcept {
  StreamRecord* asked[16];
  std::size_t count = 0;
  const bool is_wait = options.reuse == Reuse::Wait;
  while (count < std::size(asked)) {
    StreamRecord* next = nullptr;
    std::uint64_t newest = 0;
    const auto consider = [&](const Block* block) {
      for (const Use& use : block->uses.entries()) {
        if (next != nullptr && use.stream != next) continue;
        if (arena->IsOver(use) || std::find(asked, asked + count, use.stream) != asked + count) continue;
        next = use.stream;
        newest = std::max(newest, use.sequence);
      }
    };
    {
      const Held held(arena->lock);
      arena->Resettle(limit);
      if (is_wait) arena->Promote(limit);
      std::size_t left = limit;
      for (const Block* block = arena->waiting; block != nullptr && left-- != 0; block = block->link) {
        if (!IsInCapture(block)) consider(block);
      }
      for (const FreeBins& set : arena->pending) {
        left = is_wait && !options.deterministic ? limit : 0;
        for (const Block* block = set.First(); block != nullptr && left-- != 0; block = set.Next(block)) consider(block);
      }
      arena->looked_at = arena->waiting_count;
    }
    if (next == nullptr) return CUDA_SUCCESS;
    asked[count++] = next;
    const CUresult result = next->PollUpTo(driver, newest);
    if (result != CUDA_SUCCESS) return result;
  }
  const Held held(arena->lock);
  arena->Resettle(limit);
  if (is_wait) arena->Promote(limit);
  arena->looked_at = arena->waiting_count;
  return CUDA_SUCCESS;
}

Block* Core::TakeReady(Arena* arena, const Request& request, bool thorough, CUresult* error) noexcept {
  if (thorough) caches.Empty(arena);
  bool polled = false;
  for (int turn = 0; turn < 3; ++turn) {
    {
      const Held held(arena->lock);
      if (options.garbage_collection_threshold > 0.0) arena->device->searches.fetch_add(1, std::memory_order_relaxed);
      arena->Collect();
      const bool may_look = arena->waiting != nullptr || (thorough && options.reuse == Reuse::Wait && !options.deterministic);
      const bool due = !polled && (arena->IsLookDue(request.large) || (thorough && may_look));
      if (thorough && !due) (void)arena->MergeMixed();
      Block* const block = due ? nullptr : arena->FindIn(arena->ready, request);
      if (block != nullptr) {
        arena->Remove(block);
        arena->Split(block, request.size);
        arena->GiveOut(block, request);
        Raise(&arena->served_ready);
        return block;
      }
      if (polled || (!due && !may_look)) return nullptr;
    }
    polled = true;
    *error = PollWaiting(arena, thorough ? Arena::kEverything : Arena::kGlance);
    if (*error != CUDA_SUCCESS) return nullptr;
  }
  return nullptr;
}

// What other streams left: that were retired, or any when the options allow.
Block* Core::TakeOther(Arena* arena, const Request& request, CUresult* error) noexcept {
  for (Arena* other = arenas.First(); other != nullptr; other = other->next_all) {
    const bool retired = other->stream->retired.load(std::memory_order_acquire);
    if (other == arena || other->device != arena->device || other->pool != arena->pool) continue;
    if (!retired && options.cross_stream == CrossStream::Never) continue;
    // A graph keeps what its capture was given: that comes from no memory that serves others, and goes to none.
    if (!request.stream->SharesScope(*other->stream)) continue;
    caches.Empty(other);
    Block* block = nullptr;
    {
      const Held held(other->lock);
      other->Collect();
      other->Resettle(Arena::kGlance);
      block = other->FindIn(other->ready, request);
      if (block == nullptr) block = other->FindImplied(request);  // what this stream gave back itself, above all
      if (block == nullptr) continue;
      other->Remove(block);
    }
    const std::uint64_t owed =
        retired ? std::min(block->own_sequence, other->stream->begun.load(std::memory_order_acquire)) : block->own_sequence;
    bool granted = request.stream->HasWaited(other->stream, owed);
    if (granted && !other->stream->IsOver(owed)) other->CountElided(block, request.stream, Use{other->stream, owed});
    bool waited = false;
    if (!granted && !options.deterministic) *error = other->stream->Poll(driver, owed, &granted);
    if (*error == CUDA_SUCCESS && !granted && options.reuse == Reuse::Wait && (retired || options.cross_stream == CrossStream::Wait))
      *error = MakeWait(request, block, Use{other->stream, owed}, &granted);
    waited = granted && !other->stream->IsOver(owed);
    for (const Use& use : block->uses.entries()) {
      if (granted && !use.stream->IsOver(use.sequence)) other->CountElided(block, request.stream, use);
    }
    const Held held(other->lock);
    if (!granted) {
      other->Settle(block);
      if (*error != CUDA_SUCCESS) return nullptr;
      continue;
    }
    // The part that stays keeps its uses: other streams may get it.
    other->Split(block, request.size);
    other->GiveOut(block, request);
    Raise(waited ? &other->served_pending : &other->served_other);
    return block;
  }
  return nullptr;
}

// The request's stream waits for one use. `*granted` false: an error, or it cannot, being captured or the use unrecorded.
CUresult Core::MakeWait(const Request& request, const Block* block, const Use& use, bool* granted) noexcept {
  *granted = false;
  if (!request.can_touch) return CUDA_SUCCESS;
  CurrentContext current(driver, request.stream->context, true);
  CUresult result = current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (result == CUDA_SUCCESS) result = driver.StreamIsCapturing(request.live, &status);
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return result;
  bool possible = true;
  if (request.stream->HasWaited(use.stream, use.sequence)) {
    if (!use.stream->IsOver(use.sequence)) block->arena.load(std::memory_order_relaxed)->CountElided(block, request.stream, use);
  } else {
    result = use.stream->WaitOn(driver, use.sequence, request.stream, request.live, &possible);
    if (result == CUDA_SUCCESS && possible && Traced())
      block->arena.load(std::memory_order_relaxed)
          ->Trace(TraceAction::UseWaited, block->address.load(std::memory_order_relaxed), block->size, request.bytes, request.stack,
                  request.stream->id, use.stream->id, use.sequence);
  }
  const CUresult left = current.Leave();
  if (result == CUDA_SUCCESS) result = left;
  *granted = possible && result == CUDA_SUCCESS;
  return result;
}

// The pending block with the fewest streams to wait for, among the best fits.
Block* Core::TakePending(Arena* arena, const Request& request, CUresult* error) noexcept {
  if (options.reuse != Reuse::Wait || !request.can_touch) return nullptr;
  Block* chosen = nullptr;
  {
    const Held held(arena->lock);
    const FreeBins& set = arena->pending[Index(request.large)];
    const Block* const best = arena->FindIn(arena->pending, request);
    Block* next = arena->FindIn(arena->pending, request);
    std::size_t least = Arena::kEverything;
    for (std::size_t i = 0; i < kCandidates && next != nullptr; ++i) {
      Block* const block = next;
      next = set.Next(block);
      // A larger one must not be much larger: debts are short, fragments stay.
      if (request.large && block->size > best->size + options.max_non_split_rounding) break;
      if (!arena->MayServe(block, request)) break;
      std::size_t debt = 0;
      arena->Recognize(block);
      for (const Use& use : block->uses.entries()) {
        if (arena->IsOver(use)) continue;
        debt = use.stream->word != nullptr || !use.stream->IsRecorded(use.sequence) ? Arena::kEverything : debt + 1;
        if (debt == Arena::kEverything) break;
      }
      if (debt >= least) continue;
      least = debt;
      chosen = block;
    }
    if (chosen == nullptr) return nullptr;
    arena->Remove(chosen);
  }
  // Uses that lie before another one, as far as is known, come last: by then they have been waited for.
  bool granted = true;
  std::uint64_t implied = 0;
  const auto uses = chosen->uses.entries();
  for (std::size_t i = 0; i < uses.size() && i < 64; ++i) {
    for (const Use& other : uses) {
      if (other.stream != uses[i].stream && other.stream->Implies(other.sequence, uses[i].stream, uses[i].sequence))
        implied |= std::uint64_t{1} << i;
    }
  }
  for (const bool last : {false, true}) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const bool is_last = i < 64 && (implied >> i & 1) != 0;
      if (is_last == last && *error == CUDA_SUCCESS && granted) *error = MakeWait(request, chosen, uses[i], &granted);
    }
  }
  const Held held(arena->lock);
  if (*error != CUDA_SUCCESS || !granted) {
    arena->Settle(chosen);
    return nullptr;
  }
  chosen->uses.Clear();
  chosen->own_sequence = arena->stream->NextSequence();  // behind the waits: they count for whoever waits for this stream
  arena->Split(chosen, request.size);
  arena->GiveOut(chosen, request);
  Raise(&arena->served_pending);
  return chosen;
}

}  // namespace cuaudit::alloc
