// SPDX-License-Identifier: MIT
// families.h: programs of common patterns that look suspicious and are right, each with a twin in which one thing is wrong.
//
//   Owns      nothing; what a program keeps for the process is static, and reset by Reset().
//   Threads   one thread.
//   Errors    as the programs report them.
//   Faults    as the sweep arms them.
//   Source    the patterns; no program of anybody else's.
//
// `Wrong` is false for the program that must stay silent under every fault, and under two of them.
#pragma once

#include <cuaudit/lifecycle.h>

#include <string>

#include "suites/unit/ledger/seen.h"

namespace cuaudit::testing {

// The audit, its findings noted (seen.h).
inline Audit Noted(Audit audit) {
  for (const Finding& finding : audit.findings) Saw(finding.rule, finding.kind.empty() ? "none" : finding.kind);
  return audit;
}

// A handle that is made when it is first needed and kept for the process. Wrong: it is made again each time.
template <bool Wrong>
struct LazyCache {
  static inline CUevent cached = nullptr;
  static void Reset() { cached = nullptr; }
  CUresult Init(DriverRef driver) {
    if (cached != nullptr && !Wrong) return CUDA_SUCCESS;
    CUevent made = nullptr;
    const CUresult code = driver.EventCreate(&made, 0);
    if (code == CUDA_SUCCESS) cached = made;
    return code;
  }
  CUresult Work(DriverRef driver) { return driver.EventRecord(cached, nullptr); }
};

// Two owners of one stream, which goes with the last of them. Wrong: an owner that fails to start keeps its share.
template <bool Wrong>
struct SharedStream {
  static inline CUstream stream = nullptr;
  static inline int owners = 0;
  static void Reset() {
    stream = nullptr;
    owners = 0;
  }
  static CUresult Take(DriverRef driver) {
    const CUresult code = owners == 0 ? driver.StreamCreate(&stream, 0) : CUDA_SUCCESS;
    owners += code == CUDA_SUCCESS;
    return code;
  }
  static CUresult Give(DriverRef driver) { return --owners == 0 ? driver.StreamDestroy(stream) : CUDA_SUCCESS; }

  struct Owner {
    CUevent event = nullptr;
    CUresult Start(DriverRef driver) {
      CUresult code = Take(driver);
      if (code != CUDA_SUCCESS) return code;
      code = driver.EventCreate(&event, 0);
      if (code != CUDA_SUCCESS && !Wrong) (void)Give(driver);
      return code;
    }
    CUresult Stop(DriverRef driver) {
      const CUresult one = driver.EventDestroy(event);
      const CUresult two = Give(driver);
      return one == CUDA_SUCCESS ? two : one;
    }
  };
  Owner first;
  Owner second;
  CUresult Init(DriverRef driver) {
    CUresult code = first.Start(driver);
    if (code != CUDA_SUCCESS) return code;
    code = second.Start(driver);
    if (code != CUDA_SUCCESS) (void)first.Stop(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = first.Stop(driver);
    const CUresult two = second.Stop(driver);
    return one == CUDA_SUCCESS ? two : one;
  }
};

// Out of memory: what is cached is given back, and the allocation tried once more. Wrong: what was cached is forgotten, not given back.
template <bool Wrong>
struct RetryOnOutOfMemory {
  CUdeviceptr cached = 0;
  CUdeviceptr memory = 0;
  CUresult Trim(DriverRef driver) {
    const CUdeviceptr old = cached;
    cached = 0;
    return old == 0 || Wrong ? CUDA_SUCCESS : driver.MemFree(old);
  }
  CUresult Init(DriverRef driver) {
    CUresult code = driver.MemAllocManaged(&cached, 4096, CU_MEM_ATTACH_GLOBAL);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemAlloc(&memory, 256);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
      code = Trim(driver);
      if (code == CUDA_SUCCESS) code = driver.MemAlloc(&memory, 256);
    }
    if (code != CUDA_SUCCESS) (void)Trim(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.MemFree(memory);
    const CUresult two = cached == 0 ? CUDA_SUCCESS : driver.MemFree(cached);
    return one == CUDA_SUCCESS ? two : one;
  }
};

// Memory that lives in the order of a stream, freed while its work is pending. Wrong: not freed when the work could not be queued.
template <bool Wrong>
struct StreamOrdered {
  CUstream stream = nullptr;
  CUresult Init(DriverRef driver) { return driver.StreamCreate(&stream, 0); }
  CUresult Work(DriverRef driver) {
    CUdeviceptr memory = 0;
    CUresult code = driver.MemAllocAsync(&memory, 4096, stream);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemsetD8Async(memory, 0, 4096, stream);
    if (code != CUDA_SUCCESS && Wrong) return code;
    const CUresult freed = driver.MemFreeAsync(memory, stream);
    return code == CUDA_SUCCESS ? freed : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.StreamSynchronize(stream);
    const CUresult two = driver.StreamDestroy(stream);
    return one == CUDA_SUCCESS ? two : one;
  }
};

// A memory pool that it goes on without. Wrong: it is declared to be optional, and Init fails all the same.
template <bool Wrong>
struct OptionalPool {
  CUmemoryPool pool = nullptr;
  CUdeviceptr memory = 0;
  CUresult Init(DriverRef driver) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUresult code = driver.MemPoolCreate(&pool, &properties);
    if (code != CUDA_SUCCESS) pool = nullptr;
    if (code != CUDA_SUCCESS && Wrong) return code;
    code = pool != nullptr ? driver.MemAllocFromPoolAsync(&memory, 4096, pool, nullptr) : driver.MemAllocAsync(&memory, 4096, nullptr);
    if (code != CUDA_SUCCESS && pool != nullptr) (void)driver.MemPoolDestroy(pool);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.MemFreeAsync(memory, nullptr);
    const CUresult two = driver.StreamSynchronize(nullptr);
    const CUresult three = pool == nullptr ? CUDA_SUCCESS : driver.MemPoolDestroy(pool);
    return one != CUDA_SUCCESS ? one : two != CUDA_SUCCESS ? two : three;
  }
};

// A user object moved into a graph: it dies with the executable graph, long after its maker let go. Wrong: the maker's reference is not
// moved, and nobody gives it back.
template <bool Wrong>
struct LateUserObject {
  CUgraphExec executable = nullptr;
  CUresult Init(DriverRef driver) {
    CUgraph graph = nullptr;
    CUuserObject object = nullptr;
    CUresult code = driver.GraphCreate(&graph, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.UserObjectCreate(
        &object, nullptr, [](void*) {}, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (code == CUDA_SUCCESS) {
      code = driver.GraphRetainUserObject(graph, object, 1, Wrong ? 0 : CU_GRAPH_USER_OBJECT_MOVE);
      if (code != CUDA_SUCCESS) (void)driver.UserObjectRelease(object, 1);
    }
    if (code == CUDA_SUCCESS) code = driver.GraphInstantiateWithFlags(&executable, graph, 0);
    const CUresult destroyed = driver.GraphDestroy(graph);
    if (code == CUDA_SUCCESS && destroyed != CUDA_SUCCESS) (void)driver.GraphExecDestroy(executable);
    return code == CUDA_SUCCESS ? destroyed : code;
  }
  CUresult Work(DriverRef driver) { return driver.GraphLaunch(executable, nullptr); }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.StreamSynchronize(nullptr);
    const CUresult two = driver.GraphExecDestroy(executable);
    return one == CUDA_SUCCESS ? two : one;
  }
};

}  // namespace cuaudit::testing
