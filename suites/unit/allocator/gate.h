// SPDX-License-Identifier: MIT
// gate.h: work on a stream that does not end until the test says so, however the device runs.
//
// Owns a word of pinned memory, which is freed when the held streams are idle.
#pragma once

#include <vector>

#include "suites/unit/allocator/allocating.h"

namespace cuaudit::alloc {

class Gate {
 public:
  explicit Gate(driver::DriverRef d) : d_(d) {
    EXPECT_OK(d_.MemHostAlloc(&word_, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    EXPECT_OK(d_.MemHostGetDevicePointer(&address_, word_, 0));
    *static_cast<volatile unsigned*>(word_) = 0;
  }
  ~Gate() {
    Open();
    EXPECT_OK(d_.MemFreeHost(word_));
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Work queued on the stream from now on does not run until Open.
  void Hold(CUstream stream) {
    EXPECT_OK(d_.StreamWaitValue32(stream, address_, opened_ + 1, CU_STREAM_WAIT_VALUE_GEQ));
    held_.push_back(stream);
  }
  // And all of it is over.
  void Open() {
    *static_cast<volatile unsigned*>(word_) = ++opened_;
    for (const CUstream stream : held_) EXPECT_OK(d_.StreamSynchronize(stream));
    held_.clear();
  }

 private:
  driver::DriverRef d_;
  void* word_ = nullptr;
  CUdeviceptr address_ = 0;
  unsigned opened_ = 0;
  std::vector<CUstream> held_;
};

}  // namespace cuaudit::alloc
