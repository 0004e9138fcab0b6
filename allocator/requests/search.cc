// SPDX-License-Identifier: MIT
#include "allocator/requests/search.h"

#include <algorithm>

#include "allocator/driver_scope.h"
#include "allocator/tables/pool_table.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kCandidates = 8;  // pending blocks whose debts are compared
constexpr std::uint64_t kFreesPerStamp = 64;
constexpr std::uint64_t kBytesPerStamp = std::uint64_t{64} << 20;

}  // namespace

Block* Search::Take(Arena* arena, const Request& request, CUresult* error) noexcept {
  *error = StampForOthers(arena, request);
  Block* block = nullptr;
  if (*error == CUDA_SUCCESS) block = TakeReady(arena, request, false, error);
  if (block == nullptr && *error == CUDA_SUCCESS) block = TakeReady(arena, request, true, error);
  if (block == nullptr && *error == CUDA_SUCCESS) block = TakeCaptured(arena, request, error);
  if (block == nullptr && *error == CUDA_SUCCESS) block = TakeOther(arena, request, error);
  if (block == nullptr && *error == CUDA_SUCCESS) block = TakePending(arena, request, error);
  return block;
}

// So that other streams can be given what this one freed, without touching it later.
CUresult Search::StampForOthers(Arena* arena, const Request& request) noexcept {
  StreamRecord* const stream = request.stream;
  bool due = stream->IsStampDue();
  if (env_.options.cross_stream != CrossStream::Never) {
    const Held held(arena->lock);
    arena->Collect();
    due = due || arena->stamped_frees >= kFreesPerStamp || arena->stamped_bytes >= kBytesPerStamp;
    if (due) arena->stamped_frees = arena->stamped_bytes = 0;
  }
  if (!due || !request.can_touch || request.capture != 0) return CUDA_SUCCESS;
  CurrentContext current(env_.driver, stream->context, true);
  if (current.result() != CUDA_SUCCESS) return current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = env_.driver.StreamIsCapturing(request.live, &status);
  std::uint64_t sequence = 0;
  if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE) result = stream->Record(env_.driver, request.live, &sequence);
  const CUresult left = current.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

CUresult Search::PollWaiting(Arena* arena, std::size_t limit) noexcept {
  StreamRecord* asked[16];
  std::size_t count = 0;
  const bool is_wait = env_.options.reuse == Reuse::Wait;
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
        left = is_wait && !env_.options.deterministic ? limit : 0;
        for (const Block* block = set.First(); block != nullptr && left-- != 0; block = set.Next(block)) consider(block);
      }
      arena->looked_at = arena->waiting_count;
    }
    if (next == nullptr) return CUDA_SUCCESS;
    asked[count++] = next;
    const CUresult result = next->PollUpTo(env_.driver, newest);
    if (result != CUDA_SUCCESS) return result;
  }
  const Held held(arena->lock);
  arena->Resettle(limit);
  if (is_wait) arena->Promote(limit);
  arena->looked_at = arena->waiting_count;
  return CUDA_SUCCESS;
}

Block* Search::TakeReady(Arena* arena, const Request& request, bool thorough, CUresult* error) noexcept {
  if (thorough) caches_.Empty(arena);
  bool polled = false;
  for (int turn = 0; turn < 3; ++turn) {
    {
      const Held held(arena->lock);
      if (env_.options.garbage_collection_threshold > 0.0) arena->device->searches.fetch_add(1, std::memory_order_relaxed);
      arena->Collect();
      const bool may_look = arena->waiting != nullptr || (thorough && env_.options.reuse == Reuse::Wait && !env_.options.deterministic);
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
Block* Search::TakeOther(Arena* arena, const Request& request, CUresult* error) noexcept {
  for (Arena* other = arenas_.First(); other != nullptr; other = other->next_all) {
    const bool retired = other->stream->retired.load(std::memory_order_acquire);
    if (other == arena || other->device != arena->device || other->pool != arena->pool) continue;
    if (!retired && env_.options.cross_stream == CrossStream::Never) continue;
    // A graph keeps what its capture was given: that comes from no memory that serves others, and goes to none.
    if (!request.stream->SharesScope(*other->stream)) continue;
    caches_.Empty(other);
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
    if (!granted && !env_.options.deterministic) *error = other->stream->Poll(env_.driver, owed, &granted);
    if (*error == CUDA_SUCCESS && !granted && env_.options.reuse == Reuse::Wait &&
        (retired || env_.options.cross_stream == CrossStream::Wait))
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
CUresult Search::MakeWait(const Request& request, const Block* block, const Use& use, bool* granted) noexcept {
  *granted = false;
  if (!request.can_touch) return CUDA_SUCCESS;
  CurrentContext current(env_.driver, request.stream->context, true);
  CUresult result = current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (result == CUDA_SUCCESS) result = env_.driver.StreamIsCapturing(request.live, &status);
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return result;
  bool possible = true;
  if (request.stream->HasWaited(use.stream, use.sequence)) {
    if (!use.stream->IsOver(use.sequence)) block->arena.load(std::memory_order_relaxed)->CountElided(block, request.stream, use);
  } else {
    result = use.stream->WaitOn(env_.driver, use.sequence, request.stream, request.live, &possible);
    if (result == CUDA_SUCCESS && possible && env_.Traced())
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
Block* Search::TakePending(Arena* arena, const Request& request, CUresult* error) noexcept {
  if (env_.options.reuse != Reuse::Wait || !request.can_touch) return nullptr;
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
      if (request.large && block->size > best->size + env_.options.max_non_split_rounding) break;
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
  arena->Owe(chosen, arena->stream->NextSequence());  // behind the waits: they count for whoever waits for this stream
  arena->Split(chosen, request.size);
  arena->GiveOut(chosen, request);
  Raise(&arena->served_pending);
  return chosen;
}

// In a capture: a block that was used by captured work which the graph orders before what this stream captures next.
Block* Search::TakeCaptured(Arena* arena, const Request& request, CUresult* error) noexcept {
  if (!request.can_touch) return nullptr;
  {
    const Held held(arena->lock);
    bool any = false;
    for (const Block* block = arena->waiting; block != nullptr && !any; block = block->link) any = block->captured != nullptr;
    if (!any) return nullptr;
  }
  CaptureView view;
  CurrentContext current(env_.driver, request.stream->context, true);
  *error = current.result();
  if (*error == CUDA_SUCCESS) *error = streams_.LookAt(request.stream, request.live, &view);
  if (*error != CUDA_SUCCESS) return nullptr;
  if (view.id == 0) {  // then what its last capture used may be free by now
    {
      const Held held(arena->lock);
      arena->Resettle(Arena::kEverything);
    }
    return TakeReady(arena, request, false, error);
  }
  if (!env_.options.capture_reuse_by_topology) return nullptr;
  Block* chosen = nullptr;
  {
    const Held held(arena->lock);
    for (Block* block = arena->waiting; block != nullptr; block = block->link) {
      bool fits = block->captured != nullptr && block->uses.empty() && block->large == request.large && block->size >= request.size &&
                  arena->MayServe(block, request) && (chosen == nullptr || block->size < chosen->size);
      for (const CapturedUse* use = block->captured; use != nullptr; use = use->next) fits = fits && use->capture->id == view.id;
      if (fits) chosen = block;
    }
    if (chosen == nullptr) return nullptr;
    arena->Remove(chosen);
  }
  bool ordered = true;
  for (const CapturedUse* use = chosen->captured; use != nullptr && ordered && *error == CUDA_SUCCESS; use = use->next)
    *error = IsOrderedBefore(env_.driver, use->nodes, view.last, &ordered);
  const Held held(arena->lock);
  if (*error != CUDA_SUCCESS || !ordered) {
    arena->Settle(chosen);
    return nullptr;
  }
  DropCaptured(chosen);
  arena->Split(chosen, request.size);
  arena->GiveOut(chosen, request);
  Raise(&arena->served_capture);
  return chosen;
}

}  // namespace cuaudit::alloc
