// SPDX-License-Identifier: MIT
// driver_scope.h: what a thread must be like for a driver call: the right context current, and permission to make calls that a capture
// in the usual mode forbids.
//
//   Owns      one entry of the thread's context stack, or the thread's capture mode, until Leave.
//   Threads   the constructing one.
//   Errors    result() of entering; Leave answers the error of the way back, tried again when that is safe. The destructor leaves if
//             nobody did.
//   Faults    CurrentContext: CtxGetCurrent, and unless it is current CtxPushCurrent, CtxPopCurrent.
//             RelaxedCapture: ThreadExchangeStreamCaptureMode. With a LastChance neither the question nor the mode is needed.
#pragma once

#include <cuda.h>

#include <utility>

#include "faults/driver/driver_ref.h"

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

}  // namespace cuaudit::alloc
