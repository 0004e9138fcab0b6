// SPDX-License-Identifier: MIT
// frame_pool.h: a stream, and device memory for a number of frames.
#pragma once

#include <cuaudit/driver.h>

#include <cstddef>
#include <vector>

class FramePool {
 public:
  explicit FramePool(std::size_t frames) : wanted_(frames) {}

  CUresult Init(cuaudit::DriverRef driver);      // fails: everything is released again
  CUresult Work(cuaudit::DriverRef driver);      // clears all frames
  CUresult Teardown(cuaudit::DriverRef driver);  // the first error that occurs; goes on after it

 private:
  std::size_t wanted_;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> frames_;
};
