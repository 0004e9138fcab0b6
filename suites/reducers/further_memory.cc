// SPDX-License-Identifier: MIT
// further_memory.cc: memory of pools, runs and destructors that nobody gives back.
#include <vector>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

// A solver that takes a work buffer for each run.
//
// Story   E10: the buffer belongs to the run and to nobody who is destroyed at its end: one device buffer more after each run (hypre, and
//         a burn-in program that sizes a new buffer for each turn).
// Source  https://github.com/hypre-space/hypre, https://github.com/wilicc/gpu-burn; written anew from the facts of the fixes.
namespace cuaudit::reducers::hypre_e10_buffer_per_run {
namespace {

template <bool repaired>
struct Solver {
  CUstream stream = nullptr;
  CUdeviceptr matrix = 0;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&matrix, 65536);
    if (code != CUDA_SUCCESS) (void)Destroy(driver, &stream);
    return code;
  }
  CUresult Work(DriverRef driver) {
    CUdeviceptr buffer = 0;
    CUresult code = driver.MemAlloc(&buffer, 4096);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemcpyDtoDAsync(buffer, matrix, 4096, stream);
    if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(stream);
    return repaired ? First(code, driver.MemFree(buffer)) : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = matrix == 0 ? CUDA_SUCCESS : driver.MemFree(std::exchange(matrix, 0));
    return First(code, Destroy(driver, &stream));
  }
};

TEST(HypreE10, LeavesABufferForEachRun) {
  const auto lifecycle = Lifecycle::Of<Solver<false>>("hypre_e10").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "device_memory 3");
}

TEST(HypreE10, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Solver<true>>("hypre_e10_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::hypre_e10_buffer_per_run

// A pool that grows by mapping more memory into one range of addresses.
//
// Story   E9: at its end the pool unmaps and gives the addresses back; the handles of the physical memory, which live on after their
//         mappings, stay.
// Source  https://github.com/ggml-org/llama.cpp, ggml-cuda; written anew from the facts of the fix.
namespace cuaudit::reducers::llama_cpp_e9_vmm_pool {
namespace {

template <bool releases_handles>
struct VmmPool {
  static constexpr std::size_t kSteps = 2;
  std::size_t step = 0;
  CUdeviceptr base = 0;
  std::size_t mapped = 0;  // bytes
  std::vector<CUmemGenericAllocationHandle> handles;
  CUmemAllocationProp properties = {};

  CUresult Init(DriverRef driver) {
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    CUresult code = driver.MemGetAllocationGranularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (code == CUDA_SUCCESS) code = driver.MemAddressReserve(&base, kSteps * step, 0, 0, 0);
    for (std::size_t i = 0; i < kSteps && code == CUDA_SUCCESS; ++i) code = Grow(driver);
    if (code != CUDA_SUCCESS && (Teardown(driver) != CUDA_SUCCESS)) (void)Teardown(driver);
    return code;
  }
  CUresult Grow(DriverRef driver) {
    CUmemGenericAllocationHandle handle = 0;
    CUresult code = driver.MemCreate(&handle, step, &properties, 0);
    if (code != CUDA_SUCCESS) return code;
    handles.push_back(handle);
    code = driver.MemMap(base + mapped, step, 0, handle, 0);
    if (code != CUDA_SUCCESS) return code;
    mapped += step;
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver.MemSetAccess(base + mapped - step, step, &access, 1);
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    if (mapped != 0) code = driver.MemUnmap(base, mapped);
    if (code != CUDA_SUCCESS) return code;  // all of it is kept for another try
    mapped = 0;
    while (releases_handles && !handles.empty()) {
      code = First(code, driver.MemRelease(handles.back()));
      handles.pop_back();
    }
    return base == 0 ? code : First(code, driver.MemAddressFree(std::exchange(base, 0), kSteps * step));
  }
};

TEST(LlamaCppE9, KeepsAHandleForEachTimeItGrew) {
  const auto lifecycle = Lifecycle::Of<VmmPool<false>>("llama_cpp_e9").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "physical_memory 6");
}

TEST(LlamaCppE9, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<VmmPool<true>>("llama_cpp_e9_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::llama_cpp_e9_vmm_pool

// Pinned memory that is freed when the garbage collector comes to it.
//
// Story   E4: the array that holds pinned memory is collected after its context is gone, and its destructor frees what went with the
//         context; nobody hears what the driver answers. The other half of the row is further_programs.cc.
// Source  https://github.com/inducer/pycuda; written anew from the facts of the fixes.
namespace cuaudit::reducers::pycuda_e4_pinned_in_destructor {
namespace {

enum class Freed { WhenCollected, BeforeItsContext };

template <Freed when>
struct PinnedArray {
  DriverRef driver;
  CUcontext context = nullptr;
  void* pinned = nullptr;

  CUresult Init(DriverRef audited) {
    driver = audited;
    CUresult code = driver.CtxCreate(&context, nullptr, 0, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.MemAllocHost(&pinned, 4096);
    if (code != CUDA_SUCCESS) (void)driver.CtxDestroy(std::exchange(context, nullptr));
    return code;
  }
  CUresult Teardown(DriverRef) {
    CUresult code = CUDA_SUCCESS;
    if (when == Freed::BeforeItsContext && pinned != nullptr) code = driver.MemFreeHost(std::exchange(pinned, nullptr));
    return context == nullptr ? code : First(code, driver.CtxDestroy(std::exchange(context, nullptr)));
  }
  PinnedArray() = default;
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  ~PinnedArray() {
    if (pinned != nullptr) (void)driver.MemFreeHost(pinned);
  }
};

template <Freed when>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<PinnedArray<when>>(name).Prepare([](DriverRef driver) { return driver.Init(0); });
}

TEST(PycudaE4, TheDestructorFreesWhatWentWithItsContext) {
  // The context is the array's own, so the memory that went with it is not lost; that it is freed afterwards is wrong.
  EXPECT_EQ(Lost(RunCycles(Of<Freed::WhenCollected>("pycuda_e4"), {.warm_up = 0, .cycles = 1})), "use_after_release pinned_memory");
}

TEST(PycudaE4, RepairedIsSilent) { ExpectSilent(Of<Freed::BeforeItsContext>("pycuda_e4_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::pycuda_e4_pinned_in_destructor

// A memory pool in a static object.
//
// Story   E8: the pool is destroyed when the process leaves, after the context: it waits for its events and frees its segments in a
//         context that is gone, which was a crash in most exits. The repair notices the end and keeps its hands off; here it is emptied
//         before.
// Source  https://github.com/rapidsai/rmm/issues/2366; written anew from the facts. The process's end is the end of a context of the
//         case's own.
namespace cuaudit::reducers::rmm_e8_pool_at_exit {
namespace {

enum class Emptied { AtExit, BeforeTheContext };

template <Emptied when>
struct Pool {
  DriverRef driver;
  CUcontext context = nullptr;
  CUevent freed = nullptr;
  CUdeviceptr segment[2] = {};

  CUresult Init(DriverRef audited) {
    driver = audited;
    CUresult code = driver.CtxCreate(&context, nullptr, 0, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.EventCreate(&freed, CU_EVENT_DISABLE_TIMING);
    for (CUdeviceptr& one : segment) {
      if (code == CUDA_SUCCESS) code = driver.MemAlloc(&one, std::size_t{1} << 20);
    }
    if (code == CUDA_SUCCESS) code = driver.EventRecord(freed, nullptr);
    if (code == CUDA_SUCCESS) return code;
    (void)Empty();
    (void)driver.CtxDestroy(std::exchange(context, nullptr));
    return code;
  }
  CUresult Teardown(DriverRef) {
    const CUresult code = when == Emptied::BeforeTheContext ? Empty() : CUDA_SUCCESS;
    return context == nullptr ? code : First(code, driver.CtxDestroy(std::exchange(context, nullptr)));
  }
  CUresult Empty() {
    CUresult code = freed == nullptr ? CUDA_SUCCESS : driver.EventSynchronize(freed);
    code = First(code, Destroy(driver, &freed));
    for (CUdeviceptr& one : segment) {
      if (one != 0) code = First(code, driver.MemFree(std::exchange(one, 0)));
    }
    return code;
  }
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { (void)Empty(); }
};

template <Emptied when>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<Pool<when>>(name).Prepare([](DriverRef driver) { return driver.Init(0); });
}

TEST(RmmE8, FreesInAContextThatIsGone) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("a genuine driver dies of an event whose context is gone");
  // Waited for and destroyed; the two segments are freed at one place.
  EXPECT_EQ(Lost(RunCycles(Of<Emptied::AtExit>("rmm_e8"), {.warm_up = 0, .cycles = 1})),
            "use_after_release event, use_after_release event, use_after_release device_memory");
}

TEST(RmmE8, RepairedIsSilent) { ExpectSilent(Of<Emptied::BeforeTheContext>("rmm_e8_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::rmm_e8_pool_at_exit

// A plug-in that normalises, with a library that wants a handle.
//
// Story   E11: each enqueue makes a handle of the library and none is destroyed. A handle of such a library is a stream, an event and
//         device memory for its workspace, so three kinds grow at once. The repair makes one when the plug-in is attached, and destroys
//         it when it is detached.
// Source  https://github.com/NVIDIA/TensorRT, instance normalisation plug-in; written anew from the facts of the fix.
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
