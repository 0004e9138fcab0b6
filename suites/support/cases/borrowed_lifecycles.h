// SPDX-License-Identifier: MIT
// borrowed_lifecycles.h: programs that change something of their caller for a while or use what they were lent, and their repaired twins.
#pragma once

#include <cuaudit/lifecycle.h>

#include "suites/support/cases/own_context.h"

namespace cuaudit::testing {

// A context beside the primary one. Several contexts: the work goes through them, and puts the first one back at the end.
template <bool Wrong, int Contexts>
struct WorksInOtherContexts {
  CUcontext other[2] = {};
  CUresult Init(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (int i = 0; i < Contexts && code == CUDA_SUCCESS; ++i) {
      CUcontext popped = nullptr;
      code = MakeContext(driver, &other[i]);
      if (code != CUDA_SUCCESS) {
        other[i] = nullptr;
      } else {
        code = driver.CtxPopCurrent(&popped);
      }
    }
    if (code != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Work(DriverRef driver) { return Use(driver); }
  CUresult Teardown(DriverRef driver) {
    CUresult first = CUDA_SUCCESS;
    for (CUcontext& one : other) {
      const CUresult code = one == nullptr ? CUDA_SUCCESS : driver.CtxDestroy(one);
      one = nullptr;
      if (first == CUDA_SUCCESS) first = code;
    }
    return first;
  }

 private:
  [[gnu::noinline]] CUresult Use(DriverRef driver) {
    CUcontext before = nullptr;
    CUresult code = driver.CtxGetCurrent(&before);
    if (code != CUDA_SUCCESS) return code;
    for (int i = 0; i < Contexts && code == CUDA_SUCCESS; ++i) {
      code = driver.CtxSetCurrent(other[i]);
      CUstream stream = nullptr;
      if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, 0);
      if (code == CUDA_SUCCESS) code = driver.StreamDestroy(stream);
    }
    if (code != CUDA_SUCCESS && Wrong) return code;
    const CUresult back = driver.CtxSetCurrent(before);
    return code != CUDA_SUCCESS ? code : back;
  }
};

// Fails over: the first context that works stays current for the rest of the cycle.
struct ChoosesAContext {
  CUcontext other[2] = {};
  CUresult Init(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (CUcontext& one : other) {
      code = MakeContext(driver, &one);
      if (code != CUDA_SUCCESS) one = nullptr;
      if (code != CUDA_SUCCESS) break;
      code = driver.CtxPopCurrent(nullptr);
      if (code != CUDA_SUCCESS) break;
    }
    if (code == CUDA_SUCCESS) {
      code = Try(driver, other[0]);
      if (code != CUDA_SUCCESS) code = Try(driver, other[1]);
    }
    if (code != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult first = CUDA_SUCCESS;
    for (CUcontext& one : other) {
      const CUresult code = one == nullptr ? CUDA_SUCCESS : driver.CtxDestroy(one);
      one = nullptr;
      if (first == CUDA_SUCCESS) first = code;
    }
    return first;
  }

 private:
  [[gnu::noinline]] static CUresult Try(DriverRef driver, CUcontext context) {
    CUresult code = driver.CtxSetCurrent(context);
    CUstream stream = nullptr;
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, 0);
    return code == CUDA_SUCCESS ? driver.StreamDestroy(stream) : code;
  }
};

// Records a graph on a stream that its teardown uses once more, or only destroys.
template <bool Wrong, bool UsesIt>
struct RecordsAGraph {
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemAlloc(&memory, 4096);
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(stream);
    return code;
  }
  CUresult Work(DriverRef driver) {
    CUgraph graph = nullptr;
    const CUresult code = Record(driver, &graph);
    return code == CUDA_SUCCESS ? driver.GraphDestroy(graph) : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = UsesIt ? driver.StreamSynchronize(stream) : CUDA_SUCCESS;
    const CUresult two = driver.StreamDestroy(stream);
    const CUresult three = driver.MemFree(memory);
    return one != CUDA_SUCCESS ? one : two != CUDA_SUCCESS ? two : three;
  }

 private:
  [[gnu::noinline]] CUresult Record(DriverRef driver, CUgraph* graph) {
    CUresult code = driver.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemsetD8Async(memory, 0, 4096, stream);
    if (code != CUDA_SUCCESS && Wrong) return code;
    const CUresult ended = driver.StreamEndCapture(stream, graph);
    if (code != CUDA_SUCCESS && ended == CUDA_SUCCESS) (void)driver.GraphDestroy(*graph);
    return code != CUDA_SUCCESS ? code : ended;
  }
};

// Changes the copy of a graph inside a node. Wrong: the way back destroys the copy, which the node owns.
template <bool Wrong>
struct ChangesAChildGraph {
  CUgraph parent = nullptr;
  CUgraphExec executable = nullptr;
  CUresult Init(DriverRef driver) {
    CUgraph child = nullptr;
    CUgraph inner = nullptr;
    CUgraphNode node = nullptr;
    CUresult code = driver.GraphCreate(&parent, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.GraphCreate(&child, 0);
    if (code == CUDA_SUCCESS) {
      code = driver.GraphAddChildGraphNode(&node, parent, nullptr, 0, child);
      const CUresult destroyed = driver.GraphDestroy(child);  // the node has a copy
      if (code == CUDA_SUCCESS) code = destroyed;
    }
    if (code == CUDA_SUCCESS) code = driver.GraphChildGraphNodeGetGraph(node, &inner);
    if (code == CUDA_SUCCESS) code = driver.GraphInstantiateWithFlags(&executable, parent, 0);
    if (code == CUDA_SUCCESS) return code;
    if (Wrong && inner != nullptr) (void)driver.GraphDestroy(inner);
    (void)driver.GraphDestroy(parent);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.GraphExecDestroy(executable);
    const CUresult two = driver.GraphDestroy(parent);
    return one != CUDA_SUCCESS ? one : two;
  }
};

// Looks at the default pool. Wrong: destroys it when its settings cannot be changed.
template <bool Wrong>
struct TunesTheDefaultPool {
  CUresult Init(DriverRef driver) {
    CUmemoryPool pool = nullptr;
    cuuint64_t most = 1U << 20U;
    CUresult code = driver.DeviceGetDefaultMemPool(&pool, 0);
    if (code == CUDA_SUCCESS) code = driver.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most);
    if (code != CUDA_SUCCESS && Wrong && pool != nullptr) (void)driver.MemPoolDestroy(pool);
    return code;
  }
};

}  // namespace cuaudit::testing
