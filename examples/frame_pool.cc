// SPDX-License-Identifier: MIT
#include "frame_pool.h"

namespace {
constexpr std::size_t kFrameBytes = 1920 * 1080;
}

CUresult FramePool::Init(cuaudit::DriverRef driver) {
  CUresult code = driver.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
  while (code == CUDA_SUCCESS && frames_.size() < wanted_) {
    CUdeviceptr frame = 0;
    code = driver.MemAlloc(&frame, kFrameBytes);
    if (code == CUDA_SUCCESS) frames_.push_back(frame);
  }
  if (code != CUDA_SUCCESS) (void)Teardown(driver);
  return code;
}

CUresult FramePool::Work(cuaudit::DriverRef driver) {
  for (const CUdeviceptr frame : frames_) {
    const CUresult code = driver.MemsetD8Async(frame, 0, kFrameBytes, stream_);
    if (code != CUDA_SUCCESS) return code;
  }
  return driver.StreamSynchronize(stream_);
}

CUresult FramePool::Teardown(cuaudit::DriverRef driver) {
  CUresult first = CUDA_SUCCESS;
  const auto note = [&first](CUresult code) {
    if (first == CUDA_SUCCESS) first = code;
  };
  for (const CUdeviceptr frame : frames_) note(driver.MemFree(frame));
  frames_.clear();
  if (stream_ != nullptr) note(driver.StreamDestroy(stream_));
  stream_ = nullptr;
  return first;
}
