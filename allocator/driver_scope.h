// SPDX-License-Identifier: MIT
// driver_scope.h: what stands around a driver call: the thread's context and mode, and whose the memory is when a release failed.
#pragma once

#include <cuda.h>

#include <utility>

#include "faults/driver/driver_ref.h"
#include "faults/driver/result.h"

namespace cuaudit::alloc {

// While a thread closes its allocator: what is not given back now is lost. So a context is made current though the driver does not tell
// which one is, and calls are made though the mode could not be set, which matters only while a capture is open.
class LastChance {
 public:
  LastChance() noexcept : before_(std::exchange(current_, this)) {}
  LastChance(const LastChance&) = delete;
  LastChance& operator=(const LastChance&) = delete;
  ~LastChance() { current_ = before_; }
  CUresult error() const noexcept { return error_; }  // the first that nobody stopped at
  static bool GoesOn(CUresult error) noexcept {       // true: noted here
    if (current_ == nullptr) return false;
    if (current_->error_ == CUDA_SUCCESS) current_->error_ = error;
    return true;
  }

 private:
  inline static constinit thread_local LastChance* current_ = nullptr;
  LastChance* const before_;
  CUresult error_ = CUDA_SUCCESS;
};

// What a thread must be like for a driver call: the right context current, and permission to make calls that a capture
// in the usual mode forbids.
//
//   Owns      one entry of the thread's context stack, or the thread's capture mode, until Leave.
//   Threads   the constructing one.
//   Errors    result() of entering; Leave answers the error of the way back, tried again when that is safe. The destructor leaves if
//             nobody did.
//   Faults    CurrentContext: CtxGetCurrent, and unless it is current CtxPushCurrent, CtxPopCurrent.
//             RelaxedCapture: ThreadExchangeStreamCaptureMode. With a LastChance neither the question nor the mode is needed.
class CurrentContext {
 public:
  // `any`: another one will do as well, as long as there is one.
  CurrentContext(driver::DriverRef driver, CUcontext context, bool any = false) noexcept : driver_(driver), context_(context) {
    CUcontext current = nullptr;
    result_ = driver_.CtxGetCurrent(&current);
    const bool is_told = result_ == CUDA_SUCCESS;
    if (is_told ? current == context || (any && current != nullptr) : !LastChance::GoesOn(result_)) return;
    result_ = driver_.CtxPushCurrent(context);
    pushed_ = result_ == CUDA_SUCCESS;
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() { (void)Leave(); }
  CUresult result() const noexcept { return result_; }
  bool has_pushed() const noexcept { return pushed_; }
  CUresult Leave() noexcept {
    if (!pushed_) return CUDA_SUCCESS;
    pushed_ = false;
    CUcontext popped = nullptr;
    const CUresult result = driver_.CtxPopCurrent(&popped);
    if (result == CUDA_SUCCESS) return result;
    // It may have popped all the same: then once more would take the caller's.
    CUcontext current = nullptr;
    if (driver_.CtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) return result;
    return driver_.CtxPopCurrent(&popped);
  }

 private:
  driver::DriverRef driver_;
  CUcontext context_;
  CUresult result_;
  bool pushed_ = false;
};

class RelaxedCapture {
 public:
  explicit RelaxedCapture(driver::DriverRef driver) noexcept : driver_(driver) {
    result_ = driver_.ThreadExchangeStreamCaptureMode(&mode_);
    entered_ = result_ == CUDA_SUCCESS && mode_ != CU_STREAM_CAPTURE_MODE_RELAXED;
    if (result_ != CUDA_SUCCESS && LastChance::GoesOn(result_)) result_ = CUDA_SUCCESS;
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { (void)Leave(); }
  CUresult result() const noexcept { return result_; }
  CUresult Leave() noexcept {
    if (!entered_) return CUDA_SUCCESS;
    entered_ = false;
    const CUstreamCaptureMode back = mode_;
    CUresult result = driver_.ThreadExchangeStreamCaptureMode(&mode_);
    if (result == CUDA_SUCCESS) return result;
    mode_ = back;
    return driver_.ThreadExchangeStreamCaptureMode(&mode_);
  }

 private:
  driver::DriverRef driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result_;
  bool entered_ = false;
};

// The same calls in the spelling of older headers.
inline CUresult SynchronizeCurrent(driver::DriverRef driver, [[maybe_unused]] CUcontext current) noexcept {
#if CUDA_VERSION >= 13000
  return driver.CtxSynchronize(current);
#else
  return driver.CtxSynchronize();
#endif
}
inline CUresult ContextOf(driver::DriverRef driver, CUstream stream, CUcontext* out) noexcept {
#if CUDA_VERSION >= 13000
  CUgreenCtx green = nullptr;  // a stream of a green context counts as its device's
  return driver.StreamGetCtx(stream, out, &green);
#else
  return driver.StreamGetCtx(stream, out);
#endif
}

// Memory whose release failed but may have been done all the same: freed again only while it is proved to be ours.
//
//   Threads   not thread-safe; guarded by what guards the memory.
//   Errors    CUresult as the driver gave it.
//   Faults    PointerGetAttribute, and what the caller frees with.
//   Source    CUDA 13.0: CU_POINTER_ATTRIBUTE_BUFFER_ID is unique within the process, so what somebody else got at the same address has
//             another one. cuPointerGetAttribute of memory that is gone answers INVALID_VALUE (measured).
//   Not here  handles: no question tells whose they are, and a second cuEventDestroy or cuStreamDestroy crashes (measured).
struct Tenure {
  unsigned long long buffer_id = 0;  // 0: not asked yet
  bool in_doubt = false;             // a release failed, and so did the question whether it was done: nobody may use the memory
  bool doubted = false;              // was in doubt, now or before
};

// `*gone` tells whether the memory is given back, now or by an earlier try. If it is not, it is still ours, unless `in_doubt`.
template <typename Free>
CUresult FreeOurs(driver::DriverRef driver, CUdeviceptr address, Tenure* tenure, bool* gone, Free free) noexcept {
  *gone = false;
  unsigned long long now = 0;
  if (tenure->buffer_id == 0 || tenure->in_doubt) {
    const CUresult asked = driver.PointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
    if (!tenure->in_doubt) {
      if (asked != CUDA_SUCCESS) {
        *gone = driver::IsSticky(asked);
        return asked;
      }
      tenure->buffer_id = now;
    } else {
      *gone = asked == CUDA_ERROR_INVALID_VALUE || (asked == CUDA_SUCCESS && now != tenure->buffer_id) || driver::IsSticky(asked);
      if (*gone) return CUDA_SUCCESS;
      if (asked != CUDA_SUCCESS) return asked;
      tenure->in_doubt = false;
    }
  }
  const CUresult result = free();
  *gone = result == CUDA_SUCCESS || driver::IsSticky(result);  // a lost context takes its memory along
  if (*gone) return result;
  const CUresult asked = driver.PointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
  *gone = asked == CUDA_ERROR_INVALID_VALUE || (asked == CUDA_SUCCESS && now != tenure->buffer_id) || driver::IsSticky(asked);
  tenure->in_doubt = asked != CUDA_SUCCESS && !*gone;
  tenure->doubted = tenure->doubted || tenure->in_doubt;
  return result;
}

}  // namespace cuaudit::alloc
