// SPDX-License-Identifier: MIT
// subjects.h: lifecycles that unwind cleanly whatever call fails, which the fuzzer tries to refute, and some with a defect.
//
// Each returns the CUresult of the first call that failed; teardown goes on after a failure.
#pragma once

#include <cuda.h>

#include <vector>

#include "cuaudit/lifecycle.h"

namespace cuaudit::fuzz {

inline CUresult FirstOf(CUresult one, CUresult other) { return one != CUDA_SUCCESS ? one : other; }

// Planes of one picture, their stream and an event. A handle is forgotten after its release, also when the driver refused the release.
struct Picture {
  explicit Picture(std::size_t planes) : memory(planes) {}
  std::vector<CUdeviceptr> memory;
  CUstream stream = nullptr;
  CUevent ready = nullptr;

  CUresult Init(DriverRef driver) {
    // A failed call may leave anything in its output.
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) {
      stream = nullptr;
      return code;
    }
    code = driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) ready = nullptr;
    for (CUdeviceptr& plane : memory) {
      if (code != CUDA_SUCCESS) break;
      code = driver.MemAlloc(&plane, 4096);
      if (code != CUDA_SUCCESS) plane = 0;
    }
    if (code == CUDA_SUCCESS) return code;
    (void)Teardown(driver);
    return code;
  }
  CUresult Work(DriverRef driver) {
    for (const CUdeviceptr plane : memory) {
      const CUresult code = driver.MemsetD8Async(plane, 0, 4096, stream);
      if (code != CUDA_SUCCESS) return code;
    }
    const CUresult code = driver.EventRecord(ready, stream);
    return code != CUDA_SUCCESS ? code : driver.StreamSynchronize(stream);
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (const CUdeviceptr plane : memory) {
      if (plane != 0) code = FirstOf(code, driver.MemFree(plane));
    }
    if (ready != nullptr) code = FirstOf(code, driver.EventDestroy(ready));
    if (stream != nullptr) code = FirstOf(code, driver.StreamDestroy(stream));
    return code;
  }
};

// A module and an executable graph; pinned memory for its answers.
struct Program {
  CUmodule module = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  void* answers = nullptr;

  CUresult Make(DriverRef driver) {
    static constexpr char kText[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n";
    CUfunction function = nullptr;
    CUgraphNode node = nullptr;
    CUresult code = driver.ModuleLoadData(&module, kText);
    if (code != CUDA_SUCCESS) module = nullptr;
    if (code == CUDA_SUCCESS) code = driver.ModuleGetFunction(&function, module, "k");
    if (code != CUDA_SUCCESS) return code;
    code = driver.GraphCreate(&graph, 0);
    if (code != CUDA_SUCCESS) graph = nullptr;
    if (code == CUDA_SUCCESS) code = driver.GraphAddEmptyNode(&node, graph, nullptr, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.GraphInstantiateWithFlags(&executable, graph, 0);
    if (code != CUDA_SUCCESS) {
      executable = nullptr;
      return code;
    }
    code = driver.MemAllocHost(&answers, 4096);
    if (code != CUDA_SUCCESS) answers = nullptr;
    return code;
  }
  CUresult Init(DriverRef driver) {
    const CUresult code = Make(driver);
    if (code != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (answers != nullptr) code = driver.MemFreeHost(answers);
    if (executable != nullptr) code = FirstOf(code, driver.GraphExecDestroy(executable));
    if (graph != nullptr) code = FirstOf(code, driver.GraphDestroy(graph));
    if (module != nullptr) code = FirstOf(code, driver.ModuleUnload(module));
    return code;
  }
};

// Defects: a failing init forgets the stream; another trusts what a failed call wrote; one shows only when a second call fails while
// unwinding.
struct ForgetsTheStream : Picture {
  using Picture::Picture;
  CUresult Init(DriverRef driver) {
    const CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    return code != CUDA_SUCCESS ? code : driver.EventCreate(&ready, CU_EVENT_DISABLE_TIMING);
  }
  CUresult Work(DriverRef) { return CUDA_SUCCESS; }
};

struct TrustsItsOutput {
  CUstream stream = nullptr;
  CUresult Init(DriverRef driver) {
    const CUresult code = driver.StreamCreate(&stream, 0);
    if (code != CUDA_SUCCESS && stream != nullptr) (void)driver.StreamDestroy(stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) { return driver.StreamDestroy(stream); }
};

struct GivesUpUnwinding {
  CUstream stream = nullptr;
  CUevent ready = nullptr;
  CUevent done = nullptr;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = driver.EventCreate(&ready, 0);
    if (code != CUDA_SUCCESS) return (void)driver.StreamDestroy(stream), code;
    code = driver.EventCreate(&done, 0);
    if (code == CUDA_SUCCESS) return code;
    if (driver.EventDestroy(ready) == CUDA_SUCCESS) (void)driver.StreamDestroy(stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = FirstOf(driver.EventDestroy(done), CUDA_SUCCESS);
    const CUresult two = driver.EventDestroy(ready);
    return FirstOf(one, FirstOf(two, driver.StreamDestroy(stream)));
  }
};

}  // namespace cuaudit::fuzz
