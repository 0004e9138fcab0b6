// SPDX-License-Identifier: MIT
#include "allocator/tables/stream_table.h"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {
namespace {

constexpr std::uint64_t kCapturedId = std::uint64_t{1} << 63;  // identities that are none of cuStreamGetId's

// The handle cannot mean that stream and another one at once. A thread's default stream is one of each context.
bool HasHandle(const StreamRecord* record, CUstream handle, CUcontext context) noexcept {
  return record->handle == handle && (!record->own_thread || (record->thread == std::this_thread::get_id() && record->context == context));
}
// What the handle was while it was captured.
bool IsOf(const StreamRecord* record, CUstream handle, CUcontext context) noexcept {
  return record->scope != Scope::Stream && HasHandle(record, handle, context) && record->context == context;
}

}  // namespace

bool IsDefaultStream(CUstream stream) noexcept { return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

StreamTable::~StreamTable() {
  for (StreamRecord* stream = first_.load(); stream != nullptr;) delete std::exchange(stream, stream->next_all);
}

std::uint64_t StreamRef::id() const noexcept { return record_ == nullptr ? 0 : record_->id; }
CUstream StreamRef::handle() const noexcept { return record_ == nullptr ? nullptr : record_->handle; }
int StreamRef::device() const noexcept { return record_ == nullptr || record_->device == nullptr ? -1 : record_->device->index; }

// The first with which `is_it` is content, of those whose handle that is or was.
template <typename IsIt>
StreamRecord* StreamTable::FirstWithHandle(CUstream handle, IsIt is_it) noexcept {
  std::uint64_t visited = 0;
  StreamRecord* record = with_handle_[HandleBucket(handle)].load(std::memory_order_acquire);
  for (; record != nullptr; record = record->next_alike) {
    ++visited;
    if (record->handle == handle && is_it(record)) break;
  }
  records_visited_.fetch_add(visited, std::memory_order_relaxed);
  return record;
}

StreamRecord* StreamTable::FindCaptured(CUstream handle, CUcontext context, Scope scope, std::uint64_t scope_id) noexcept {
  StreamRecord* const found = FirstWithHandle(handle, [&](const StreamRecord* record) {
    return record->scope == scope && record->scope_id == scope_id && IsOf(record, handle, context);
  });
  if (found != nullptr) found->retired_as.store(nullptr, std::memory_order_release);
  return found;
}

CUresult StreamTable::MakeCaptured(CUstream stream, CUcontext context, Scope scope, std::uint64_t scope_id, StreamRecord** out) noexcept {
  *out = FindCaptured(stream, context, scope, scope_id);
  if (*out != nullptr) return CUDA_SUCCESS;
  const std::uint64_t id = kCapturedId | (env_.captured_streams.fetch_add(1, std::memory_order_acq_rel) + 1);
  return Make(id, stream, context, out, scope, scope_id);
}

void StreamTable::NoteCaptured(CUstream handle, CUcontext context, std::uint64_t capture) noexcept {
  const Held held(lock_);
  captures_noted_.fetch_add(1, std::memory_order_acq_rel);
  (void)FirstWithHandle(handle, [&](StreamRecord* record) {
    record->fast_arena.store(nullptr, std::memory_order_release);
    const std::uint64_t before = HasHandle(record, handle, context) ? record->capture.load(std::memory_order_acquire) : 0;
    if (before != 0 && before != capture) EndCapture(before);
    return false;
  });
}

void StreamTable::EnterFastPath(StreamRecord* stream, Arena* arena, std::uint64_t noted) noexcept {
  if (stream->fast_arena.load(std::memory_order_relaxed) == arena) return;
  const Held held(lock_);
  if (captures_noted_.load(std::memory_order_relaxed) == noted) stream->fast_arena.store(arena, std::memory_order_release);
}

void StreamTable::EndCapturesOf(CUstream handle, CUcontext context, StreamRecord* seen) noexcept {
  (void)FirstWithHandle(handle, [&](StreamRecord* record) {
    if (!HasHandle(record, handle, context)) return false;
    const std::uint64_t capture = record->capture.exchange(0, std::memory_order_acq_rel);
    if (capture != 0) EndCapture(capture);
    if (record->scope != Scope::Capture || record->same.load(std::memory_order_relaxed) != nullptr) return false;
    if (seen == nullptr || seen->scope != Scope::Stream || seen->handle != handle || seen->index > record->index) return false;
    const Held held(lock_);
    if (record->same.load(std::memory_order_relaxed) != nullptr) return false;
    record->same_sequence = seen->NextSequence();
    seen->Want(record->same_sequence);
    record->same.store(seen, std::memory_order_release);
    return false;
  });
}

void StreamTable::EndCapture(std::uint64_t capture) noexcept {
  captures.End(capture);
  for (StreamRecord* stream = First(); stream != nullptr; stream = stream->next_all) {
    std::uint64_t expected = capture;
    (void)stream->capture.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
  }
}

CUresult StreamTable::LookAt(StreamRecord* stream, CUstream live, CaptureView* out) noexcept {
  const std::uint64_t before = stream->capture.load(std::memory_order_acquire);
  const CUresult result = captures.LookAt(env_.driver, stream, live, out);
  if (result == CUDA_SUCCESS && before != 0 && before != out->id) EndCapture(before);
  if (out->id != 0) NoteCaptured(live, stream->context, out->id);
  if (result == CUDA_SUCCESS && out->id == 0 && env_.captured_streams.load(std::memory_order_acquire) != 0)
    EndCapturesOf(live, stream->context, stream);
  return result;
}

CUresult StreamTable::Make(std::uint64_t id, CUstream stream, CUcontext context, StreamRecord** out, Scope scope,
                           std::uint64_t scope_id) noexcept {
  EventPool* const of_context = events.Of(context);
  std::unique_ptr<StreamRecord> record(new (std::nothrow) StreamRecord);
  if (of_context == nullptr || record == nullptr)
    return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "stream %p: no host memory", static_cast<void*>(stream));
  record->id = id;
  record->handle = stream;
  record->context = context;
  record->is_default = IsDefaultStream(stream);
  record->own_thread = stream == CU_STREAM_PER_THREAD;
  record->scope = scope;
  record->scope_id = scope_id;
  record->thread = std::this_thread::get_id();
  record->events = of_context;
  record->counts = &env_.stamp_counts;
  record->max_stamps = env_.options.max_stamps_per_stream;
  for (const std::unique_ptr<Device>& device : devices_) {
    if (device->context == context) record->device = device.get();
  }
  if (env_.options.completion == Completion::StreamWrites && record->device != nullptr) {
    if (record->device->stream_writes) {
      const CUresult result = words.Make(record.get());
      if (result != CUDA_SUCCESS) return result;
    } else {
      record->device->fallbacks.fetch_add(1, std::memory_order_relaxed);
    }
  }
  const Held held(lock_);
  *out = scope == Scope::Stream ? Find(id) : FindCaptured(stream, context, scope, scope_id);
  if (*out != nullptr) return CUDA_SUCCESS;  // another thread was first; a word stays unused
  std::atomic<StreamRecord*>& head = bucket_[id % kBuckets];
  std::atomic<StreamRecord*>& alike = with_handle_[HandleBucket(stream)];
  record->index = count_++;
  record->next = head.load(std::memory_order_relaxed);
  record->next_alike = alike.load(std::memory_order_relaxed);
  record->next_all = first_.load(std::memory_order_relaxed);
  *out = record.release();
  head.store(*out, std::memory_order_release);
  alike.store(*out, std::memory_order_release);
  first_.store(*out, std::memory_order_release);
  return CUDA_SUCCESS;
}

void StreamTable::NoteRetired(StreamRecord* record, CUstream handle) noexcept {
  (void)FirstWithHandle(handle, [&](StreamRecord* other) {
    if (IsOf(other, handle, record->context))
      other->retired_as.store(record->index < other->index ? record : other, std::memory_order_release);
    return false;
  });
}

namespace {

constexpr std::size_t kPageOfWords = 4096;
constexpr std::size_t kWordBytes = 64;  // a cache line each

}  // namespace

WordPages::~WordPages() {
  while (pages_ != nullptr) delete std::exchange(pages_, pages_->next);
}

CUresult WordPages::Make(StreamRecord* stream) noexcept {
  std::unique_lock<Lock> held(lock_);
  if (pages_ == nullptr || pages_->used == kPageOfWords) {
    held.unlock();
    std::unique_ptr<Page> page(new (std::nothrow) Page);
    if (page == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    CurrentContext current(env_.driver, stream->context);
    CUresult result = current.result();
    if (result != CUDA_SUCCESS) return result;
    RelaxedCapture relaxed(env_.driver);
    if (relaxed.result() != CUDA_SUCCESS) return relaxed.result();
    result = env_.driver.MemHostAlloc(&page->host, kPageOfWords, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS) return result;
    result = env_.driver.MemHostGetDevicePointer(&page->device, page->host, 0);
    const CUresult mode = relaxed.Leave();
    const CUresult left = current.Leave();
    if (result == CUDA_SUCCESS) result = mode != CUDA_SUCCESS ? mode : left;
    if (result != CUDA_SUCCESS) page->used = kPageOfWords;  // kept, to be given back by Close
    for (std::size_t at = 0; at < kPageOfWords / sizeof(std::uint64_t); ++at) static_cast<std::uint64_t*>(page->host)[at] = 0;
    held.lock();
    page->next = pages_;
    pages_ = page.release();
    if (result != CUDA_SUCCESS) return result;
  }
  Page* const page = pages_;
  stream->word = new (static_cast<char*>(page->host) + page->used) std::atomic<std::uint64_t>(0);
  stream->word_address = page->device + page->used;
  page->used += kWordBytes;
  return CUDA_SUCCESS;
}

CUresult WordPages::Free() noexcept {
  CUresult first = CUDA_SUCCESS;
  Page** link = &pages_;
  while (*link != nullptr) {
    Page* const page = *link;
    bool gone = false;
    const CUresult result = FreeOurs(env_.driver, static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(page->host)), &page->tenure,
                                     &gone, [&] { return env_.driver.MemFreeHost(page->host); });
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

}  // namespace cuaudit::alloc
