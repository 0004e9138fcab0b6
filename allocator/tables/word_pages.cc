// SPDX-License-Identifier: MIT
#include "allocator/tables/word_pages.h"

#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "allocator/driver_scope.h"

namespace cuaudit::alloc {
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
