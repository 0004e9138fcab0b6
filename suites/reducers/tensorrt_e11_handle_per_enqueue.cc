// SPDX-License-Identifier: MIT
// tensorrt_e11_handle_per_enqueue.cc: a plug-in that normalises, with a library that wants a handle.
//
// Story   E11: each enqueue makes a handle of the library and none is destroyed. A handle of such a library is a stream, an event and
//         device memory for its workspace, so three kinds grow at once. The repair makes one when the plug-in is attached, and destroys
//         it when it is detached.
// Source  https://github.com/NVIDIA/TensorRT, instance normalisation plug-in; written anew from the facts of the fix.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

namespace cuaudit::reducers::tensorrt_e11_handle_per_enqueue {
namespace {

struct LibraryHandle {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr workspace = 0;

  CUresult Make(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&workspace, 4096);
    if (code != CUDA_SUCCESS) (void)Give(driver);
    return code;
  }
  CUresult Give(DriverRef driver) {
    CUresult code = workspace == 0 ? CUDA_SUCCESS : driver.MemFree(std::exchange(workspace, 0));
    code = First(code, Destroy(driver, &event));
    return First(code, Destroy(driver, &stream));
  }
};

constexpr int kEnqueues = 2;

struct HandlePerEnqueue {
  CUresult Init(DriverRef) { return CUDA_SUCCESS; }
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < kEnqueues; ++i) {
      LibraryHandle handle;
      CUresult code = handle.Make(driver);
      if (code == CUDA_SUCCESS) code = driver.MemsetD8Async(handle.workspace, 0, 4096, handle.stream);
      if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(handle.stream);
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }
};

struct HandlePerPlugin {
  LibraryHandle handle;
  CUresult Init(DriverRef driver) { return handle.Make(driver); }
  CUresult Work(DriverRef driver) {
    for (int i = 0; i < kEnqueues; ++i) {
      CUresult code = driver.MemsetD8Async(handle.workspace, 0, 4096, handle.stream);
      if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(handle.stream);
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) { return handle.Give(driver); }
};

TEST(TensorRtE11, LeavesAHandleForEachEnqueue) {
  const auto lifecycle = Lifecycle::Of<HandlePerEnqueue>("tensorrt_e11").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "device_memory 6, event 6, stream 6");
}

TEST(TensorRtE11, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<HandlePerPlugin>("tensorrt_e11_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::tensorrt_e11_handle_per_enqueue
