// SPDX-License-Identifier: MIT
#include <new>

#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

constexpr std::size_t kWordPageBytes = 4096;
constexpr std::size_t kWordBytes = 64;                         // a cache line each
constexpr std::uint64_t kCapturedId = std::uint64_t{1} << 63;  // identities that are none of cuStreamGetId's

bool IsDefault(CUstream stream) noexcept { return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

std::size_t HandleBucket(CUstream stream) noexcept {
  return (reinterpret_cast<std::uintptr_t>(stream) * 0x9E3779B97F4A7C15U >> 40) % Core::kBuckets;
}

// The handle cannot mean that stream and another one at once. A thread's default stream is one of each context.
bool HasHandle(const StreamRecord* record, CUstream handle, CUcontext context) noexcept {
  return record->handle == handle && (!record->own_thread || (record->thread == std::this_thread::get_id() && record->context == context));
}
// What the handle was while it was captured.
bool IsOf(const StreamRecord* record, CUstream handle, CUcontext context) noexcept {
  return record->scope != Scope::Stream && HasHandle(record, handle, context) && record->context == context;
}

}  // namespace

std::uint64_t StreamRef::id() const noexcept { return record_ == nullptr ? 0 : record_->id; }
CUstream StreamRef::handle() const noexcept { return record_ == nullptr ? nullptr : record_->handle; }
int StreamRef::device() const noexcept { return record_ == nullptr || record_->device == nullptr ? -1 : record_->device->index; }

CUresult Core::Identify(int device, CUstream stream, StreamRef* out) noexcept {
  *out = StreamRef();
  CUresult result = Usable("Identify");
  if (result != CUDA_SUCCESS) return result;
  Device* const target = devices.At(device);
  if (target == nullptr) return Refuse(CUDA_ERROR_INVALID_VALUE, "device %d: 0 to %zu are known", device, devices.size() - 1);
  const bool is_default = IsDefault(stream);
  if (options.trust_stream_handles && stream != CU_STREAM_PER_THREAD) {
    StreamRecord* const known =
        is_default ? target->legacy.load(std::memory_order_acquire) : by_handle[HandleBucket(stream)].load(std::memory_order_acquire);
    if (known != nullptr && (is_default || known->handle == stream) && !known->retired.load(std::memory_order_relaxed)) {
      *out = StreamRef(known);
      return CUDA_SUCCESS;
    }
  }
  unsigned long long id = 0;
  CUcontext context = nullptr;
  StreamRecord* found = nullptr;
  CurrentContext current(driver, target->context, !is_default);
  if ((result = current.result()) != CUDA_SUCCESS) return Note(result);
  // On a captured stream cuStreamGetId fails and ends the capture. The legacy stream is never captured, and must not be asked during one.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  std::uint64_t capture = 0;
  if (stream != nullptr && stream != CU_STREAM_LEGACY) result = CaptureOf(driver, stream, &status, &capture);
  if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
    return Refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "stream %p: its capture has been invalidated", static_cast<void*>(stream));
  if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    result = IdentifyCaptured(target, stream, capture, &found);
    const CUresult left = current.Leave();
    if (result == CUDA_SUCCESS) result = left;
    if (result == CUDA_SUCCESS) *out = StreamRef(found);
    return Note(result);
  }
  if (result == CUDA_SUCCESS) result = driver.StreamGetId(stream, &id);
  if (result != CUDA_SUCCESS) return Note(Refuse(result, "stream %p: the driver does not know it", static_cast<void*>(stream)));
  found = FindStream(id);
  if (captures_noted.load(std::memory_order_acquire) != 0) EndCapturesOf(stream, target->context, found);
  if (found == nullptr) {
    context = target->context;
    if (!is_default && (result = ContextOf(driver, stream, &context)) != CUDA_SUCCESS) return Note(result);
    result = MakeStream(id, stream, context, &found);
    if (result != CUDA_SUCCESS) return Note(result);
  }
  if ((result = current.Leave()) != CUDA_SUCCESS) return Note(result);
  if (options.trust_stream_handles) {
    if (!is_default) by_handle[HandleBucket(stream)].store(found, std::memory_order_release);
    if (is_default && stream != CU_STREAM_PER_THREAD) target->legacy.store(found, std::memory_order_release);
  }
  *out = StreamRef(found);
  return CUDA_SUCCESS;
}

// The handle may have been another stream's when it was last seen outside, so no identity from there is used: what that stream freed may
// still be in use. Captures that share a private pool promise to be replayed one after the other, so there the handle stays itself.
CUresult Core::IdentifyCaptured(Device* device, CUstream stream, std::uint64_t capture, StreamRecord** out) noexcept {
  const bool own_thread = stream == CU_STREAM_PER_THREAD;
  CUcontext context = device->context;
  if (!own_thread) {
    const CUresult result = ContextOf(driver, stream, &context);
    if (result != CUDA_SUCCESS) return result;
  }
  Scope scope = Scope::Capture;
  std::uint64_t scope_id = capture;
  for (const std::unique_ptr<Device>& each : devices) {
    if (own_thread || each->context != context || each->routed.load(std::memory_order_acquire) == 0) continue;
    StreamRecord asked;
    asked.handle = stream;
    asked.context = context;
    asked.device = each.get();
    if (const Pool* const pool = RouteOf(each.get(), &asked); pool != &shared_pool) {
      scope = Scope::Pool;
      scope_id = pool->id().second;
    }
  }
  NoteCaptured(stream, context, capture);
  const CUresult result = MakeCaptured(stream, context, scope, scope_id, out);
  if (result == CUDA_SUCCESS) (*out)->capture.store(capture, std::memory_order_release);
  return result;
}

StreamRecord* Core::FindStream(std::uint64_t id) noexcept {
  StreamRecord* found = bucket[id % kBuckets].load(std::memory_order_acquire);
  while (found != nullptr && found->id != id) found = found->next;
  return found;
}

// The first with which `is_it` is content, of those whose handle that is or was.
template <typename IsIt>
StreamRecord* Core::FirstWithHandle(CUstream handle, IsIt is_it) noexcept {
  std::uint64_t visited = 0;
  StreamRecord* record = with_handle[HandleBucket(handle)].load(std::memory_order_acquire);
  for (; record != nullptr; record = record->next_alike) {
    ++visited;
    if (record->handle == handle && is_it(record)) break;
  }
  records_visited.fetch_add(visited, std::memory_order_relaxed);
  return record;
}

StreamRecord* Core::FindCaptured(CUstream handle, CUcontext context, Scope scope, std::uint64_t scope_id) noexcept {
  StreamRecord* const found = FirstWithHandle(handle, [&](const StreamRecord* record) {
    return record->scope == scope && record->scope_id == scope_id && IsOf(record, handle, context);
  });
  if (found != nullptr) found->retired_as.store(nullptr, std::memory_order_release);
  return found;
}

CUresult Core::MakeCaptured(CUstream stream, CUcontext context, Scope scope, std::uint64_t scope_id, StreamRecord** out) noexcept {
  *out = FindCaptured(stream, context, scope, scope_id);
  if (*out != nullptr) return CUDA_SUCCESS;
  const std::uint64_t id = kCapturedId | (captured_streams.fetch_add(1, std::memory_order_acq_rel) + 1);
  return MakeStream(id, stream, context, out, scope, scope_id);
}

// The stream is in that capture: what it is outside goes to the driver from now on, until it is seen there; and other captures that its
// handle took part in are over.
void Core::NoteCaptured(CUstream handle, CUcontext context, std::uint64_t capture) noexcept {
  const Held held(make_lock);
  captures_noted.fetch_add(1, std::memory_order_acq_rel);
  (void)FirstWithHandle(handle, [&](StreamRecord* record) {
    record->fast_arena.store(nullptr, std::memory_order_release);
    const std::uint64_t before = HasHandle(record, handle, context) ? record->capture.load(std::memory_order_acquire) : 0;
    if (before != 0 && before != capture) EndCapture(before);
    return false;
  });
}

// The stream was in no capture, asked after `noted` was read.
void Core::EnterFastPath(StreamRecord* stream, Arena* arena, std::uint64_t noted) noexcept {
  if (stream->fast_arena.load(std::memory_order_relaxed) == arena) return;
  const Held held(make_lock);
  if (captures_noted.load(std::memory_order_relaxed) == noted) stream->fast_arena.store(arena, std::memory_order_release);
}

// The stream was seen outside: the captures that its handle took part in are over. If it is a stream that was known before them, the
// handle was its all the time, and so were they: its next recording ends what it is owed from before them.
void Core::EndCapturesOf(CUstream handle, CUcontext context, StreamRecord* seen) noexcept {
  (void)FirstWithHandle(handle, [&](StreamRecord* record) {
    if (!HasHandle(record, handle, context)) return false;
    const std::uint64_t capture = record->capture.exchange(0, std::memory_order_acq_rel);
    if (capture != 0) EndCapture(capture);
    if (record->scope != Scope::Capture || record->same.load(std::memory_order_relaxed) != nullptr) return false;
    if (seen == nullptr || seen->scope != Scope::Stream || seen->handle != handle || seen->index > record->index) return false;
    const Held held(make_lock);
    if (record->same.load(std::memory_order_relaxed) != nullptr) return false;
    record->same_sequence = seen->NextSequence();
    seen->Want(record->same_sequence);
    record->same.store(seen, std::memory_order_release);
    return false;
  });
}

// It is over for each stream that was in it.
void Core::EndCapture(std::uint64_t capture) noexcept {
  captures.End(capture);
  for (StreamRecord* stream = streams.load(std::memory_order_acquire); stream != nullptr; stream = stream->next_all) {
    std::uint64_t expected = capture;
    (void)stream->capture.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
  }
}

CUresult Core::LookAt(StreamRecord* stream, CUstream live, CaptureView* out) noexcept {
  const std::uint64_t before = stream->capture.load(std::memory_order_acquire);
  const CUresult result = captures.LookAt(driver, stream, live, out);
  if (result == CUDA_SUCCESS && before != 0 && before != out->id) EndCapture(before);
  if (out->id != 0) NoteCaptured(live, stream->context, out->id);
  if (result == CUDA_SUCCESS && out->id == 0 && captured_streams.load(std::memory_order_acquire) != 0)
    EndCapturesOf(live, stream->context, stream);
  return result;
}

CUresult Core::MakeStream(std::uint64_t id, CUstream stream, CUcontext context, StreamRecord** out, Scope scope,
                          std::uint64_t scope_id) noexcept {
  EventPool* const events = EventsOf(context);
  std::unique_ptr<StreamRecord> record(new (std::nothrow) StreamRecord);
  if (events == nullptr || record == nullptr)
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "stream %p: no host memory", static_cast<void*>(stream));
  record->id = id;
  record->handle = stream;
  record->context = context;
  record->is_default = IsDefault(stream);
  record->own_thread = stream == CU_STREAM_PER_THREAD;
  record->scope = scope;
  record->scope_id = scope_id;
  record->thread = std::this_thread::get_id();
  record->events = events;
  record->counts = &stamp_counts;
  record->max_stamps = options.max_stamps_per_stream;
  for (const std::unique_ptr<Device>& device : devices) {
    if (device->context == context) record->device = device.get();
  }
  if (options.completion == Completion::StreamWrites && record->device != nullptr) {
    if (record->device->stream_writes) {
      const CUresult result = MakeWord(record.get());
      if (result != CUDA_SUCCESS) return result;
    } else {
      record->device->fallbacks.fetch_add(1, std::memory_order_relaxed);
    }
  }
  const Held held(make_lock);
  *out = scope == Scope::Stream ? FindStream(id) : FindCaptured(stream, context, scope, scope_id);
  if (*out != nullptr) return CUDA_SUCCESS;  // another thread was first; a word stays unused
  std::atomic<StreamRecord*>& head = bucket[id % kBuckets];
  std::atomic<StreamRecord*>& alike = with_handle[HandleBucket(stream)];
  record->index = stream_count.fetch_add(1, std::memory_order_relaxed);
  record->next = head.load(std::memory_order_relaxed);
  record->next_alike = alike.load(std::memory_order_relaxed);
  record->next_all = streams.load(std::memory_order_relaxed);
  *out = record.release();
  head.store(*out, std::memory_order_release);
  alike.store(*out, std::memory_order_release);
  streams.store(*out, std::memory_order_release);
  return CUDA_SUCCESS;
}

// A cache line of mapped memory that the stream writes to and the host reads.
CUresult Core::MakeWord(StreamRecord* stream) noexcept {
  std::unique_lock<Lock> held(make_lock);
  if (word_pages_ == nullptr || word_pages_->used == kWordPageBytes) {
    held.unlock();
    std::unique_ptr<WordPage> page(new (std::nothrow) WordPage);
    if (page == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    CurrentContext current(driver, stream->context);
    CUresult result = current.result();
    if (result != CUDA_SUCCESS) return result;
    RelaxedCapture relaxed(driver);
    if (relaxed.result() != CUDA_SUCCESS) return relaxed.result();
    result = driver.MemHostAlloc(&page->host, kWordPageBytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS) return result;
    result = driver.MemHostGetDevicePointer(&page->device, page->host, 0);
    const CUresult mode = relaxed.Leave();
    const CUresult left = current.Leave();
    if (result == CUDA_SUCCESS) result = mode != CUDA_SUCCESS ? mode : left;
    if (result != CUDA_SUCCESS) page->used = kWordPageBytes;  // kept, to be given back by Close
    for (std::size_t at = 0; at < kWordPageBytes / sizeof(std::uint64_t); ++at) static_cast<std::uint64_t*>(page->host)[at] = 0;
    held.lock();
    page->next = word_pages_;
    word_pages_ = page.release();
    if (result != CUDA_SUCCESS) return result;
  }
  WordPage* const page = word_pages_;
  stream->word = new (static_cast<char*>(page->host) + page->used) std::atomic<std::uint64_t>(0);
  stream->word_address = page->device + page->used;
  page->used += kWordBytes;
  return CUDA_SUCCESS;
}

CUresult Core::FreeWords() noexcept {
  CUresult first = CUDA_SUCCESS;
  WordPage** link = &word_pages_;
  while (*link != nullptr) {
    WordPage* const page = *link;
    bool gone = false;
    const CUresult result = FreeOurs(driver, static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(page->host)), &page->tenure, &gone,
                                     [&] { return driver.MemFreeHost(page->host); });
    if (first == CUDA_SUCCESS) first = result;
    if (!gone) {
      link = &page->next;
      continue;
    }
    *link = page->next;
    delete page;
  }
  return first;
}

EventPool* Core::EventsOf(CUcontext context) noexcept {
  for (EventPool* pool = event_pools.load(std::memory_order_acquire); pool != nullptr; pool = pool->next) {
    if (pool->context() == context) return pool;
  }
  const Held held(make_lock);
  for (EventPool* pool = event_pools.load(std::memory_order_relaxed); pool != nullptr; pool = pool->next) {
    if (pool->context() == context) return pool;
  }
  EventPool* const pool = new (std::nothrow) EventPool(context);
  if (pool == nullptr) return nullptr;
  pool->next = event_pools.load(std::memory_order_relaxed);
  event_pools.store(pool, std::memory_order_release);
  return pool;
}

Arena* Core::ArenaOf(Device* device, Pool* pool, StreamRecord* stream) noexcept {
  const auto find = [&]() -> Arena* {
    if (pool == &shared_pool) return stream->arena.load(std::memory_order_acquire);
    for (Arena* arena = pool->arenas.load(std::memory_order_acquire); arena != nullptr; arena = arena->next_of_pool) {
      if (arena->stream == stream) return arena;
    }
    return nullptr;
  };
  if (Arena* const arena = find(); arena != nullptr) return arena;
  const Held held(make_lock);
  if (Arena* const arena = find(); arena != nullptr) return arena;
  Arena* const arena = new (std::nothrow) Arena;
  if (arena == nullptr) return nullptr;
  arena->environment = this;
  if (!arena->Init()) {
    delete arena;
    return nullptr;
  }
  arena->device = device;
  arena->pool = pool;
  arena->stream = stream;
  arena->index = arena_count.fetch_add(1, std::memory_order_relaxed);
  arena->next_all = arenas.load(std::memory_order_relaxed);
  arenas.store(arena, std::memory_order_release);
  if (pool == &shared_pool) {
    stream->arena.store(arena, std::memory_order_release);
  } else {
    arena->next_of_pool = pool->arenas.load(std::memory_order_relaxed);
    pool->arenas.store(arena, std::memory_order_release);
  }
  return arena;
}

CUresult Core::RetireStream(int device, CUstream stream) noexcept {
  StreamRef ref;
  CUresult result = Identify(device, stream, &ref);
  if (result != CUDA_SUCCESS) return result;
  StreamRecord* const record = ref.record();
  if (record->device == nullptr || record->retired.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  CurrentContext current(driver, record->context);
  result = current.result();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (result == CUDA_SUCCESS) result = driver.StreamIsCapturing(stream, &status);
  if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
    result = Refuse(CUDA_ERROR_ILLEGAL_STATE, "RetireStream: the stream is being captured: end the capture first");
  std::uint64_t sequence = 0;
  if (result == CUDA_SUCCESS) result = record->Record(driver, stream, &sequence);
  // Whoever is told of an error goes on using the stream: so nothing that may fail comes after this.
  const CUresult left = current.Leave();
  if (result == CUDA_SUCCESS) result = left;
  if (result != CUDA_SUCCESS) return Note(result);
  record->retired.store(true, std::memory_order_release);
  record->ForgetWaits();
  (void)FirstWithHandle(stream, [&](StreamRecord* other) {
    if (IsOf(other, stream, record->context))
      other->retired_as.store(record->index < other->index ? record : other, std::memory_order_release);
    return false;
  });
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::alloc
