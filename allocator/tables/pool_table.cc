// SPDX-License-Identifier: MIT
#include "allocator/tables/pool_table.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "allocator/blocks/capture.h"
#include "allocator/errors.h"
#include "allocator/tables/device.h"

namespace cuaudit::alloc {
namespace {

// The allocators whose route filters this thread is in, the innermost first.
struct Asking {
  const PoolTable* table;
  const Asking* outer;
};
constinit thread_local const Asking* asking = nullptr;

}  // namespace

PoolTable::~PoolTable() {
  for (Pool* pool = first_.load(); pool != nullptr;) {
    pool->ForgetCaptures();
    delete std::exchange(pool, pool->next);
  }
  while (known_options_ != nullptr) delete std::exchange(known_options_, known_options_->next);
}

bool PoolTable::IsAskingARoute() const noexcept {
  const Asking* one = asking;
  while (one != nullptr && one->table != this) one = one->outer;
  return one != nullptr;
}

Pool* PoolTable::Find(PoolId id) noexcept {
  const Held held(lock_);
  for (Pool* pool = first_.load(std::memory_order_relaxed); pool != nullptr; pool = pool->next) {
    if (pool->id() == id) return pool;
  }
  return nullptr;
}

// lock_ is held, so that the record does not become another pool's meanwhile.
Pool* PoolTable::FindUsed(PoolId id) noexcept {
  Pool* pool = first_.load(std::memory_order_relaxed);
  while (pool != nullptr && pool->id() != id) pool = pool->next;
  return pool == nullptr || pool->users.load(std::memory_order_relaxed) == 0 ? nullptr : pool;
}

// Options like these that are never changed; nullptr: no host memory. lock_ is held.
const PoolOptions* PoolTable::Know(const PoolOptions& wanted) noexcept {
  for (const KnownOptions* known = known_options_; known != nullptr; known = known->next) {
    if (known->options == wanted) return &known->options;
  }
  KnownOptions* const known = new (std::nothrow) KnownOptions{wanted, known_options_};
  if (known == nullptr) return nullptr;
  known_options_ = known;
  return &known->options;
}

// A pool without users and without memory lends its record to the next.
CUresult PoolTable::CreatePool(const PoolOptions& pool_options, PoolId* out) noexcept {
  *out = PoolId();
  const CUresult result = env_.Usable("CreatePool");
  if (result != CUDA_SUCCESS) return result;
  if ((pool_options.acquire == nullptr) != (pool_options.release == nullptr))
    return Refuse(CUDA_ERROR_INVALID_VALUE, "CreatePool: acquire and release come together, or neither");
  const Held held(lock_);
  const PoolOptions* const known = Know(pool_options);
  if (known == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "CreatePool: no host memory");
  Pool* pool = first_.load(std::memory_order_relaxed);
  for (; pool != nullptr; pool = pool->next) {
    bool empty = pool->users.load(std::memory_order_acquire) == 0;
    for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr && empty; arena = arena->next_of_pool) {
      // Whoever has it may be waiting for lock_. One that is busy counts as not empty.
      const std::unique_lock<Lock> arena_held(arena->lock, std::try_to_lock);
      empty = arena_held.owns_lock() && arena->segments == nullptr;
    }
    if (empty) break;
  }
  if (pool == nullptr) {
    pool = new (std::nothrow) Pool;
    if (pool == nullptr) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "CreatePool: no host memory");
    pool->is_private = true;
    pool->next = first_.load(std::memory_order_relaxed);
    first_.store(pool, std::memory_order_release);
  }
  pool->number.store(next_++, std::memory_order_relaxed);
  pool->known.store(known, std::memory_order_release);
  pool->ForgetCaptures();
  pool->users.store(1, std::memory_order_release);
  *out = pool->id();
  return CUDA_SUCCESS;
}

// While it has a route a pool has a user: ReleasePool leaves the last one then.
CUresult PoolTable::BeginAllocateToPool(int device, PoolId id, const Route& route) noexcept {
  Device* target = nullptr;
  CUresult result = devices_.Find(device, "BeginAllocateToPool", &target);
  if (result != CUDA_SUCCESS) return result;
  Pool* pool = nullptr;
  {
    const Held held(lock_);
    pool = FindUsed(id);
    if (pool == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "BeginAllocateToPool: no such pool, or it has no users any more");
    pool->users.fetch_add(1, std::memory_order_acq_rel);
    pool->routes.fetch_add(1, std::memory_order_acq_rel);
  }
  const CUresult added = AddRoute(target, pool, route);
  if (added != CUDA_SUCCESS) {
    DropRoute(pool);
    const Held held(lock_);
    pool->users.fetch_sub(1, std::memory_order_acq_rel);
    return added;
  }
  env_.AddDetour();
  const Held settled(target->settling);  // who waits for the context has not seen the route: the caller's capture begins after that
  return CUDA_SUCCESS;
}

// The last one ends the pool's captures.
void PoolTable::DropRoute(Pool* pool) noexcept {
  const Held held(lock_);
  if (pool->routes.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (const Capture* capture : pool->captures) streams_.EndCapture(capture->id);
  pool->ForgetCaptures();
  // As far as is known their streams are in none any more.
  for (const StreamRecord* inside = streams_.First(); inside != nullptr; inside = inside->next_all) {
    if (inside->scope != Scope::Pool || inside->scope_id != pool->id().second) continue;
    if (const std::uint64_t capture = inside->capture.load(std::memory_order_acquire); capture != 0) streams_.EndCapture(capture);
  }
}

CUresult PoolTable::AddRoute(Device* device, Pool* pool, const Route& route) noexcept {
  const Held held(device->routes_lock);
  for (const std::unique_ptr<Routed>& routed : device->routes) {
    if (routed->pool == pool)
      return Refuse(CUDA_ERROR_ILLEGAL_STATE, "BeginAllocateToPool: allocations go to the pool already: end that first");
  }
  try {
    device->routes.push_back(std::make_unique<Routed>(Routed{pool, route, ++device->routes_begun}));
  } catch (...) {
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "BeginAllocateToPool: no host memory");
  }
  device->routed.fetch_add(1, std::memory_order_acq_rel);
  return CUDA_SUCCESS;
}

CUresult PoolTable::EndAllocateToPool(int device, PoolId id) noexcept {
  Device* target = nullptr;
  const CUresult result = devices_.Find(device, "EndAllocateToPool", &target);
  if (result != CUDA_SUCCESS) return result;
  Pool* const pool = Find(id);
  if (IsAskingARoute())
    return Refuse(CUDA_ERROR_ILLEGAL_STATE, "EndAllocateToPool: called by the filter of a route, which it would wait for");
  Routed* ending = nullptr;
  {
    const Held held(target->routes_lock);
    for (const std::unique_ptr<Routed>& routed : target->routes) {
      if (routed->pool == pool && !routed->is_ending) ending = routed.get();
    }
    if (pool == nullptr || ending == nullptr)
      return Refuse(CUDA_ERROR_ILLEGAL_STATE, "EndAllocateToPool: no allocations go to this pool: begin first");
    ending->is_ending = true;
  }
  // The filter and what it refers to are the caller's: they may go when this has returned.
  for (Waiter waiter;; waiter.Pause()) {
    const Held held(target->routes_lock);
    if (ending->asking != 0) continue;
    std::erase_if(target->routes, [ending](const std::unique_ptr<Routed>& routed) { return routed.get() == ending; });
    break;
  }
  env_.RemoveDetour();
  target->routed.fetch_sub(1, std::memory_order_acq_rel);
  DropRoute(pool);
  for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_of_pool) {
    const Held held(arena->lock);
    arena->Collect();
    arena->Resettle(Arena::kEverything);
  }
  return CUDA_SUCCESS;
}

CUresult PoolTable::ReleasePool(PoolId id) noexcept {
  const CUresult result = env_.Usable("ReleasePool");
  if (result != CUDA_SUCCESS) return result;
  const Held held(lock_);
  Pool* const pool = FindUsed(id);
  if (pool == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "ReleasePool: no such pool, or it has no users any more");
  if (pool->users.load(std::memory_order_relaxed) == 1 && pool->routes.load(std::memory_order_relaxed) != 0)
    return Refuse(CUDA_ERROR_ILLEGAL_STATE, "ReleasePool: allocations are being directed to the pool: end that first");
  pool->users.fetch_sub(1, std::memory_order_acq_rel);
  return CUDA_SUCCESS;
}

Pool* PoolTable::RouteOf(Device* device, StreamRecord* stream) noexcept {
  if (device->routed.load(std::memory_order_acquire) == 0 || IsAskingARoute()) return &shared;
  for (std::uint64_t before = std::numeric_limits<std::uint64_t>::max();;) {
    Routed* asked = nullptr;
    {
      const Held held(device->routes_lock);
      for (auto at = device->routes.rbegin(); at != device->routes.rend() && asked == nullptr; ++at) {
        if ((*at)->number < before && !(*at)->is_ending) asked = at->get();
      }
      if (asked == nullptr) return &shared;
      if (asked->route.applies == nullptr) return asked->pool;
      ++asked->asking;  // so it stays
    }
    const Asking here{this, asking};
    asking = &here;
    const bool applies = asked->route.applies(asked->route.user, StreamRef(stream));
    asking = here.outer;
    Pool* const pool = asked->pool;
    before = asked->number;
    {
      const Held held(device->routes_lock);
      --asked->asking;
    }
    if (applies) return pool;
  }
}

// A pool that merely lent them blocks may be done earlier.
void PoolTable::NoteCapture(Pool* pool, Capture* capture) noexcept {
  if (pool->routes.load(std::memory_order_acquire) == 0) return;
  const Held held(lock_);
  std::vector<Capture*>& noted = pool->captures;
  if (std::find(noted.begin(), noted.end(), capture) != noted.end()) return;
  if (noted.size() == noted.capacity()) {  // a route that lasts sees many captures end
    const auto drop = [](Capture* one) {
      const bool is_over = one->ended.load(std::memory_order_acquire);
      if (is_over) one->Drop();
      return is_over;
    };
    std::erase_if(noted, drop);
  }
  try {
    noted.push_back(capture);
    capture->Keep();
  } catch (...) {
    // Then it ends when a stream of it is seen outside: later, not earlier.
  }
}

ArenaTable::~ArenaTable() {
  for (Arena* arena = first_.load(); arena != nullptr;) {
    while (arena->segments != nullptr) {
      Segment* const segment = std::exchange(arena->segments, arena->segments->next);
      for (Block* block = segment->first; block != nullptr; block = block->next) DropCaptured(block);
      delete segment;
    }
    delete std::exchange(arena, arena->next_all);
  }
}

Arena* ArenaTable::Of(Device* device, Pool* pool, StreamRecord* stream) noexcept {
  const auto find = [&]() -> Arena* {
    if (!pool->is_private) return stream->arena.load(std::memory_order_acquire);
    for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_of_pool) {
      if (arena->stream == stream) return arena;
    }
    return nullptr;
  };
  if (Arena* const arena = find(); arena != nullptr) return arena;
  const Held held(lock_);
  if (Arena* const arena = find(); arena != nullptr) return arena;
  Arena* const arena = new (std::nothrow) Arena;
  if (arena == nullptr) return nullptr;
  arena->environment = &env_;
  if (!arena->Init()) {
    delete arena;
    return nullptr;
  }
  arena->device = device;
  arena->pool = pool;
  arena->stream = stream;
  arena->index = count_++;
  arena->next_all = first_.load(std::memory_order_relaxed);
  first_.store(arena, std::memory_order_release);
  if (!pool->is_private) {
    stream->arena.store(arena, std::memory_order_release);
  } else {
    arena->next_of_pool = pool->arenas.load(std::memory_order_relaxed);
    pool->arenas.store(arena, std::memory_order_release);
  }
  return arena;
}

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

void Arena::AddSegment(Segment* segment) noexcept {
  segment->next = segments;
  if (segments != nullptr) segments->back = segment;
  segments = segment;
}

void Arena::RemoveSegment(Segment* segment) noexcept {
  (segment->back == nullptr ? segments : segment->back->next) = segment->next;
  if (segment->next != nullptr) segment->next->back = segment->back;
}

void Arena::CountElided(const Block* block, const StreamRecord* waiter, const Use& use) const noexcept {
  environment->stamp_counts.elided.fetch_add(1, std::memory_order_relaxed);
  if (environment->Traced())
    Trace(TraceAction::UseElided, block->address.load(std::memory_order_relaxed), block->size,
          block->requested.load(std::memory_order_relaxed), nullptr, waiter->id, use.stream->id, use.sequence);
}

}  // namespace cuaudit::alloc
