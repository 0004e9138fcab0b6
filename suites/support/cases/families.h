// SPDX-License-Identifier: MIT
// families.h: programs with common patterns that look suspicious and are right. Each has a twin in which one thing is wrong.
//
// `Wrong` is false for the program on which the harness must stay silent under every fault and every pair of faults. What a program
// keeps for the process is static, and Reset() resets it.
#pragma once

#include <cuaudit/lifecycle.h>

#include <cstdlib>
#include <iterator>
#include <string>

#include "suites/support/trace.h"

namespace cuaudit::testing {

// The audit, its findings noted (trace.h).
inline Audit Noted(Audit audit) {
  for (const Finding& finding : audit.findings) Saw(finding.rule, finding.kind.empty() ? "none" : finding.kind);
  SawDefects(audit.defects.size());
  return audit;
}

// A handle that is made when first needed and kept for the process. Wrong: the handle is made again each time.
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

// A stream with two owners, destroyed with the last one. Wrong: an owner that fails to start keeps its share.
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

// When memory runs out, cached memory is freed and the allocation is tried again. Wrong: the cached memory is forgotten instead of
// freed.
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

// A piece of work in a context of its own choice, with the caller's current before and after. Wrong: it pops although its push failed.
template <bool Wrong>
struct ScopedPush {
  CUcontext context = nullptr;
  CUresult Init(DriverRef driver) { return driver.CtxGetCurrent(&context); }
  CUresult Work(DriverRef driver) {
    CUdeviceptr memory = 0;
    CUresult code = driver.CtxPushCurrent(context);
    const bool pushed = code == CUDA_SUCCESS;
    if (pushed) code = driver.MemAlloc(&memory, 4096);
    if (code == CUDA_SUCCESS) code = driver.MemFree(memory);
    CUresult popped = CUDA_SUCCESS;
    if (pushed || Wrong) popped = driver.CtxPopCurrent(nullptr);
    return code == CUDA_SUCCESS ? popped : code;
  }
};

// A reference of the primary context for one piece of work. Wrong: it is given back although the retain failed.
template <bool Wrong>
struct ScopedReference {
  CUresult Init(DriverRef driver) {
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    const bool retained = code == CUDA_SUCCESS;
    if (retained) code = driver.MemAlloc(&memory, 4096);
    if (code == CUDA_SUCCESS) code = driver.MemFree(memory);
    CUresult released = CUDA_SUCCESS;
    if (retained || Wrong) released = driver.DevicePrimaryCtxRelease(0);
    return code == CUDA_SUCCESS ? released : code;
  }
};

// An event and a stream that are destroyed together. Wrong: also the one that was not made.
template <bool Wrong>
struct DestroyedTogether {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.EventCreate(&event, 0);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, 0);
    if (code != CUDA_SUCCESS && event != nullptr) (void)Teardown(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = stream == nullptr && !Wrong ? CUDA_SUCCESS : driver.StreamDestroy(stream);
    const CUresult two = driver.EventDestroy(event);
    return one == CUDA_SUCCESS ? two : one;
  }
};

// Stream-ordered memory, freed while its work is pending. Wrong: the memory is not freed when the work could not be queued.
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

// A memory pool that is optional. Wrong: the pool is declared optional, but Init fails without it.
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

// A user object whose reference is moved into a graph. It dies with the executable graph. Wrong: the reference is not moved, and nobody
// releases it.
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

// An upload from pinned memory, which is waited for before the memory goes, whatever failed. Wrong: the wait is left out when the work
// could not be queued to its end.
template <bool Wrong>
struct PinnedUpload {
  CUstream stream = nullptr;
  void* pinned = nullptr;
  CUdeviceptr memory = 0;
  bool failed = false;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemAllocHost(&pinned, 4096);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&memory, 4096);
    if (code != CUDA_SUCCESS && pinned != nullptr) (void)driver.MemFreeHost(pinned);
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(stream);
    return code;
  }
  CUresult Work(DriverRef driver) {
    CUresult code = driver.MemcpyHtoDAsync(memory, pinned, 2048, stream);
    if (code == CUDA_SUCCESS) code = driver.MemsetD8Async(memory + 2048, 0, 2048, stream);
    failed = code != CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult waited = Wrong && failed ? CUDA_SUCCESS : driver.StreamSynchronize(stream);
    const CUresult codes[] = {waited, driver.MemFreeHost(pinned), driver.MemFree(memory), driver.StreamDestroy(stream)};
    for (const CUresult code : codes) {
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }
};

// Two streams share memory, and the host waits in between. Wrong: it does not look at what the wait answers, and reports success.
template <bool Wrong>
struct WaitsInBetween {
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUdeviceptr memory = 0;
  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&first, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&second, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&memory, 4096);
    if (code != CUDA_SUCCESS && second != nullptr) (void)driver.StreamDestroy(second);
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(first);
    return code;
  }
  CUresult Work(DriverRef driver) {
    CUresult code = driver.MemsetD8Async(memory, 1, 4096, first);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamSynchronize(first);
    if (code != CUDA_SUCCESS && !Wrong) {
      (void)driver.MemsetD8Async(memory, 0, 4096, second);  // leaves no half of a result behind
      return code;
    }
    return driver.MemsetD8Async(memory, 2, 4096, second);
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult codes[] = {driver.MemFree(memory), driver.StreamDestroy(second), driver.StreamDestroy(first)};
    for (const CUresult code : codes) {
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }
};

// A context of its own, whose destruction takes a stream along when the event cannot be made. Wrong: the stream was made in the caller's
// context, where it stays.
template <bool Wrong>
struct OwnContext {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUresult Make(DriverRef driver) {
#if CUDA_VERSION >= 13000
    return driver.CtxCreate(&context, nullptr, 0, 0);
#else
    return driver.CtxCreate(&context, 0, 0);
#endif
  }
  CUresult Init(DriverRef driver) {
    CUcontext popped = nullptr;
    CUresult code = Make(driver);
    if (code != CUDA_SUCCESS) return code;
    if (Wrong) code = driver.CtxPopCurrent(&popped);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, 0);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) (void)driver.CtxDestroy(context);
    return code;
  }
  CUresult Work(DriverRef driver) { return driver.EventRecord(event, stream); }
  CUresult Teardown(DriverRef driver) {
    const CUresult codes[] = {driver.EventDestroy(event), driver.StreamDestroy(stream), driver.CtxDestroy(context)};
    for (const CUresult code : codes) {
      if (code != CUDA_SUCCESS) return code;
    }
    return CUDA_SUCCESS;
  }
};

// A user object whose destructor frees host memory when the last launch of its graph is over. Wrong: the memory is forgotten when the
// object cannot be made.
template <bool Wrong>
struct DestructorFrees {
  // Keeps every block reachable, so that LeakSanitizer does not report what a trial leaves. The audit reports it.
  static inline void* reachable[1 << 14] = {};
  static inline std::size_t blocks = 0;
  CUstream stream = nullptr;
  CUgraphExec executable = nullptr;
  CUresult Init(DriverRef driver) {
    CUgraph graph = nullptr;
    CUuserObject object = nullptr;
    void* const data = std::malloc(1 << 16);
    reachable[blocks++ % std::size(reachable)] = data;
    CUresult code = data == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : driver.GraphCreate(&graph, 0);
    if (code == CUDA_SUCCESS) {
      code = driver.UserObjectCreate(
          &object, data, [](void* own) { std::free(own); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    }
    if (code != CUDA_SUCCESS && (!Wrong || graph == nullptr)) std::free(data);
    if (code == CUDA_SUCCESS) {
      code = driver.GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
      if (code != CUDA_SUCCESS) (void)driver.UserObjectRelease(object, 1);
    }
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) {
      if (graph != nullptr) (void)driver.GraphDestroy(graph);
      return code;
    }
    code = driver.GraphInstantiateWithFlags(&executable, graph, 0);
    const CUresult destroyed = driver.GraphDestroy(graph);
    if (code == CUDA_SUCCESS && destroyed != CUDA_SUCCESS) (void)driver.GraphExecDestroy(executable);
    if (code == CUDA_SUCCESS) code = destroyed;
    if (code != CUDA_SUCCESS) (void)driver.StreamDestroy(stream);
    return code;
  }
  CUresult Work(DriverRef driver) {
    CUresult code = driver.GraphLaunch(executable, stream);
    CUdeviceptr memory = 0;
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&memory, 64);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamSynchronize(stream);
    const CUresult freed = driver.MemFree(memory);
    return code == CUDA_SUCCESS ? freed : code;
  }
  // When the allocation failed, the launch is under way.
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.GraphExecDestroy(executable);
    const CUresult two = driver.StreamDestroy(stream);
    return one == CUDA_SUCCESS ? two : one;
  }
};

}  // namespace cuaudit::testing
