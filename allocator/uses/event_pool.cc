// SPDX-License-Identifier: MIT
#include "allocator/uses/event_pool.h"

#include <new>
#include <utility>

#include "allocator/driver_scope.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

CUresult EventPool::Take(driver::DriverRef driver, CUevent* out) noexcept {
  {
    const Held held(lock_);
    if (!free_.empty()) {
      *out = free_.back();
      free_.pop_back();
      return CUDA_SUCCESS;
    }
    try {
      if (free_.capacity() < made_ + 1) free_.reserve(2 * made_ + 16);
    } catch (...) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ++made_;
  }
  CUevent event = nullptr;
  CurrentContext current(driver, context_);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) {
    result = driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) {
      created_.fetch_add(1, std::memory_order_relaxed);
      live_.fetch_add(1, std::memory_order_relaxed);
    }
    const CUresult left = current.Leave();
    if (result == CUDA_SUCCESS && left != CUDA_SUCCESS) {
      Give(event);
      return left;
    }
  }
  if (result != CUDA_SUCCESS) {
    const Held held(lock_);
    --made_;
    return result;
  }
  *out = event;
  return CUDA_SUCCESS;
}

std::size_t EventPool::TakeSome(CUevent* out, std::size_t wanted) noexcept {
  const Held held(lock_);
  std::size_t taken = 0;
  while (taken < wanted && !free_.empty()) {
    out[taken++] = free_.back();
    free_.pop_back();
  }
  return taken;
}

void EventPool::Give(const CUevent* events, std::size_t count) noexcept {
  const Held held(lock_);
  free_.insert(free_.end(), events, events + count);
}

CUresult EventPool::DestroyAll(driver::DriverRef driver, std::uint64_t* refused) noexcept {
  CUresult first = CUDA_SUCCESS;
  const Held held(lock_);  // nobody else is in a call any more
  for (const CUevent event : free_) {
    const CUresult result = driver.EventDestroy(event);
    if (first == CUDA_SUCCESS) first = result;
    *refused += result != CUDA_SUCCESS && !driver::IsSticky(result);  // a lost context takes its events along
  }
  live_.fetch_sub(free_.size(), std::memory_order_relaxed);
  made_ -= free_.size();
  free_.clear();
  return first;
}

EventPools::~EventPools() {
  for (EventPool* pool = first_.load(); pool != nullptr;) delete std::exchange(pool, pool->next);
}

EventPool* EventPools::Of(CUcontext context) noexcept {
  for (EventPool* pool = first_.load(std::memory_order_acquire); pool != nullptr; pool = pool->next) {
    if (pool->context() == context) return pool;
  }
  const Held held(lock_);
  for (EventPool* pool = first_.load(std::memory_order_relaxed); pool != nullptr; pool = pool->next) {
    if (pool->context() == context) return pool;
  }
  EventPool* const pool = new (std::nothrow) EventPool(context);
  if (pool == nullptr) return nullptr;
  pool->next = first_.load(std::memory_order_relaxed);
  first_.store(pool, std::memory_order_release);
  return pool;
}

}  // namespace cuaudit::alloc
