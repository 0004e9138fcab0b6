// SPDX-License-Identifier: MIT
// further_contexts.cc: a context that is the caller's, and what ends with one.
#include <vector>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

// An object that makes a device's primary context current for the length of a scope.
//
// Story   E3: what leaves the scope puts neither the caller's context back nor the reference of the primary context that it took: each
//         use leaves one entry on the stack and one reference, and the caller goes on in a context that is not its own.
// Source  https://github.com/eyalroz/cuda-api-wrappers; written anew from the facts of the fixes.
namespace cuaudit::reducers::cuda_api_wrappers_e3_scoped_use {
namespace {

enum class Leaves { Nothing, TheReference, TheStackEntry, Both };

template <Leaves leaves>
struct ScopedUse {
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUcontext primary = nullptr;
    CUresult code = driver.DevicePrimaryCtxRetain(&primary, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(primary);
    const bool entered = code == CUDA_SUCCESS;
    if (entered) code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (entered && leaves != Leaves::TheStackEntry && leaves != Leaves::Both) code = First(code, LeftForSure(driver));
    if (leaves != Leaves::TheReference && leaves != Leaves::Both) code = First(code, driver.DevicePrimaryCtxRelease(0));
    if (code != CUDA_SUCCESS && stream != nullptr) (void)Destroy(driver, &stream);
    return code;
  }
  CUresult Teardown(DriverRef driver) { return Destroy(driver, &stream); }

  static CUresult LeftForSure(DriverRef driver) {
    const CUresult left = Leave(driver);
    if (left != CUDA_SUCCESS) (void)Leave(driver);
    return left;
  }
};

// The caller holds the primary context, too, and works in one of its own.
CUresult MakeTheCallers(DriverRef driver) {
  CUcontext own = nullptr;
  const CUresult code = MakeTheContext(driver);
  return code == CUDA_SUCCESS ? driver.CtxCreate(&own, nullptr, 0, 0) : code;
}

template <Leaves leaves>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<ScopedUse<leaves>>(name).Prepare(MakeTheCallers);
}

constexpr CycleOptions kBehindTheFirst = {.warm_up = 1, .cycles = 3};

TEST(CudaApiWrappersE3, KeepsTheReference) {
  EXPECT_EQ(Lost(RunCycles(Of<Leaves::TheReference>("cuda_api_wrappers_e3_reference"), kBehindTheFirst)), "primary_context 3");
}

TEST(CudaApiWrappersE3, DoesNotPutTheCallersContextBack) {
  EXPECT_EQ(Lost(RunCycles(Of<Leaves::TheStackEntry>("cuda_api_wrappers_e3_current"), kBehindTheFirst)),
            "context_stack_unbalanced context_stack_entry");
  EXPECT_EQ(Lost(RunCycles(Of<Leaves::Both>("cuda_api_wrappers_e3_both"), kBehindTheFirst)),
            "primary_context 3, context_stack_unbalanced context_stack_entry");
}

TEST(CudaApiWrappersE3, RepairedIsSilent) { ExpectSilent(Of<Leaves::Nothing>("cuda_api_wrappers_e3_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::cuda_api_wrappers_e3_scoped_use

// Source text is linked and loaded at run time.
//
// Story   E5: neither the module nor the state of the linker that made it is ever given back: each compilation leaves one of both.
//         Nothing of it is bytes, so a memory meter is slow to see it.
// Source  https://github.com/cupy/cupy; written anew from the facts of the fixes.
namespace cuaudit::reducers::cupy_e5_module {
namespace {

constexpr char kText[] = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";

template <bool gives_back>
struct Compiled {
  CUlinkState link = nullptr;
  CUmodule module = nullptr;

  CUresult Init(DriverRef driver) {
    void* image = nullptr;
    std::size_t bytes = 0;
    CUresult code = driver.LinkCreate(0, nullptr, nullptr, &link);
    if (code != CUDA_SUCCESS) return code;
    code = driver.LinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(kText), sizeof(kText), "nothing", 0, nullptr, nullptr);
    if (code == CUDA_SUCCESS) code = driver.LinkComplete(link, &image, &bytes);
    if (code == CUDA_SUCCESS) code = driver.ModuleLoadData(&module, image);
    if (code != CUDA_SUCCESS && gives_back) (void)Teardown(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if (!gives_back) return CUDA_SUCCESS;
    const CUresult unloaded = module == nullptr ? CUDA_SUCCESS : driver.ModuleUnload(std::exchange(module, nullptr));
    return link == nullptr ? unloaded : First(unloaded, driver.LinkDestroy(std::exchange(link, nullptr)));
  }
};

TEST(CupyE5, LeavesAModuleAndALinkStateForEachCompilation) {
  const auto lifecycle = Lifecycle::Of<Compiled<false>>("cupy_e5").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "link_state 3, module 3");
}

TEST(CupyE5, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Compiled<true>>("cupy_e5_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::cupy_e5_module

// A decoder with one state for each image of a batch.
//
// Story   E12: a larger batch comes, and the states are made anew for all of its images over the ones that were there: their pinned and
//         device buffers and their events have no owner any more. The repair makes the missing ones only, and its teardown destroys all.
// Source  https://github.com/NVIDIA/DALI; written anew from the facts of the fix.
namespace cuaudit::reducers::dali_e12_decoder_state {
namespace {

struct DecoderState {
  void* pinned = nullptr;
  CUdeviceptr memory = 0;
  CUevent decoded = nullptr;

  CUresult Make(DriverRef driver) {
    CUresult code = driver.MemAllocHost(&pinned, 4096);
    if (code == CUDA_SUCCESS) code = driver.MemAlloc(&memory, 4096);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&decoded, CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) (void)Give(driver);
    return code;
  }
  CUresult Give(DriverRef driver) {
    CUresult code = Destroy(driver, &decoded);
    if (memory != 0) code = First(code, driver.MemFree(std::exchange(memory, 0)));
    return pinned == nullptr ? code : First(code, driver.MemFreeHost(std::exchange(pinned, nullptr)));
  }
};

template <bool keeps_what_is_there>
struct Decoder {
  std::vector<DecoderState> states;

  CUresult Init(DriverRef driver) {
    const CUresult code = Resize(driver, 2);
    if (code != CUDA_SUCCESS) (void)Teardown(driver);
    return code;
  }
  CUresult Work(DriverRef driver) { return Resize(driver, 3); }
  CUresult Resize(DriverRef driver, std::size_t batch) {
    if (!keeps_what_is_there) states.clear();
    while (states.size() < batch) {
      DecoderState state;
      const CUresult code = state.Make(driver);
      if (code != CUDA_SUCCESS) return code;
      states.push_back(state);
    }
    return CUDA_SUCCESS;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (; !states.empty(); states.pop_back()) code = First(code, states.back().Give(driver));
    return code;
  }
};

TEST(DaliE12, LosesTheStatesOfTheSmallerBatch) {
  const auto lifecycle = Lifecycle::Of<Decoder<false>>("dali_e12").WithCurrentContext();
  EXPECT_EQ(Lost(RunCycles(lifecycle, {.warm_up = 1, .cycles = 3})), "device_memory 6, event 6, pinned_memory 6");
}

TEST(DaliE12, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<Decoder<true>>("dali_e12_repaired").WithCurrentContext()); }

}  // namespace
}  // namespace cuaudit::reducers::dali_e12_decoder_state

// A hardware device that works in a context which its caller made.
//
// Story   E1: the device is made around the caller's context and destroys it at the end as if it had made it. The caller destroys it,
//         too. The same where it took the caller's reference of the primary context for its own.
// Source  https://github.com/FFmpeg/FFmpeg, libavutil/hwcontext_cuda.c; written anew from the facts of the fix.
namespace cuaudit::reducers::ffmpeg_e1_callers_context {
namespace {

// The part that is the same: a stream in a context that somebody else made.
struct Device {
  CUcontext context = nullptr;
  CUstream stream = nullptr;

  CUresult Open(DriverRef driver, CUcontext callers) {
    const CUresult pushed = driver.CtxPushCurrent(callers);
    if (pushed != CUDA_SUCCESS) return pushed;
    CUresult code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    const CUresult left = Leave(driver);
    if (left != CUDA_SUCCESS) {
      if (stream != nullptr) (void)Destroy(driver, &stream);
      (void)Leave(driver);
      code = First(code, left);
    }
    context = callers;
    return code;
  }
  // Needs no current context.
  CUresult Close(DriverRef driver) { return Destroy(driver, &stream); }
};

// The caller's own context; `owns`: what the device believes.
template <bool owns>
struct OwnContext {
  CUcontext context = nullptr;
  Device device;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.CtxCreate(&context, nullptr, 0, 0);
    if (code != CUDA_SUCCESS) return code;
    code = Leave(driver);
    if (code != CUDA_SUCCESS) (void)Leave(driver);
    if (code == CUDA_SUCCESS) code = device.Open(driver, context);
    if (code != CUDA_SUCCESS) (void)driver.CtxDestroy(std::exchange(context, nullptr));
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = device.Close(driver);
    if (owns) code = First(code, driver.CtxDestroy(device.context));
    return context == nullptr ? code : First(code, driver.CtxDestroy(std::exchange(context, nullptr)));
  }
};

template <bool owns>
struct PrimaryContext {
  CUcontext context = nullptr;
  Device device;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) return code;
    code = device.Open(driver, context);
    if (code != CUDA_SUCCESS) (void)driver.DevicePrimaryCtxRelease(0);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = device.Close(driver);
    if (owns) code = First(code, driver.DevicePrimaryCtxRelease(0));
    return std::exchange(context, nullptr) == nullptr ? code : First(code, driver.DevicePrimaryCtxRelease(0));
  }
};

CUresult InitDriver(DriverRef driver) { return driver.Init(0); }

template <typename State>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<State>(name).Prepare(InitDriver);
}

// Lifecycles whose defective form is told an error by the driver say so, and the misuse is told beside it: void teardowns report nothing.
template <typename State>
struct Unheard : State {
  void Teardown(DriverRef driver) { (void)State::Teardown(driver); }
};

TEST(FfmpegE1, DestroysTheCallersContext) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("a genuine driver dies of a context that is destroyed twice");
  EXPECT_EQ(Lost(RunCycles(Of<Unheard<OwnContext<true>>>("ffmpeg_e1"), {.warm_up = 0, .cycles = 1})), "double_release context");
}

TEST(FfmpegE1, ReleasesTheCallersReference) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("the reference that is given back too much is one of those that keep this process's context");
  EXPECT_EQ(Lost(RunCycles(Of<Unheard<PrimaryContext<true>>>("ffmpeg_e1_primary"), {.warm_up = 0, .cycles = 1})),
            "over_released_primary_context primary_context");
}

TEST(FfmpegE1, RepairedIsSilent) {
  ExpectSilent(Of<OwnContext<false>>("ffmpeg_e1_repaired"));
  ExpectSilent(Of<PrimaryContext<false>>("ffmpeg_e1_primary_repaired"));
}

}  // namespace
}  // namespace cuaudit::reducers::ffmpeg_e1_callers_context

// A profiler whose events live longer than the runtime.
//
// Story   E7: the profiler keeps events in an object that is destroyed at the very end, when the runtime has given back the device's
//         primary context; destroying the events then names what is gone. The repair lets go of them before, or does without.
// Source  https://github.com/pytorch/pytorch; written anew from the facts of the fix.
namespace cuaudit::reducers::pytorch_e7_profiler_events {
namespace {

enum class Destroyed { AfterTheRuntime, BeforeTheRuntime };

template <Destroyed when>
struct Profiler {
  DriverRef driver;
  CUcontext context = nullptr;
  CUevent event[2] = {};

  CUresult Init(DriverRef audited) {
    driver = audited;
    CUresult code = driver.DevicePrimaryCtxRetain(&context, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(context);
    const bool entered = code == CUDA_SUCCESS;
    for (CUevent& one : event) {
      if (code == CUDA_SUCCESS) code = driver.EventCreate(&one, CU_EVENT_DEFAULT);
    }
    if (entered) {
      const CUresult left = Leave(driver);
      if (left != CUDA_SUCCESS) (void)Leave(driver);
      code = First(code, left);
    }
    if (code == CUDA_SUCCESS) return code;
    for (CUevent& one : event) (void)Destroy(driver, &one);
    (void)driver.DevicePrimaryCtxRelease(0);
    context = nullptr;
    return code;
  }
  CUresult Teardown(DriverRef) {
    CUresult code = CUDA_SUCCESS;
    for (CUevent& one : event) {
      if (when == Destroyed::BeforeTheRuntime) code = First(code, Destroy(driver, &one));
    }
    // The runtime goes.
    return std::exchange(context, nullptr) == nullptr ? code : First(code, driver.DevicePrimaryCtxRelease(0));
  }
  Profiler() = default;
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  ~Profiler() {
    for (CUevent& one : event) (void)Destroy(driver, &one);
  }
};

template <Destroyed when>
Lifecycle Of(const char* name) {
  return Lifecycle::Of<Profiler<when>>(name).Prepare([](DriverRef driver) { return driver.Init(0); });
}

TEST(PytorchE7, DestroysEventsThatWentWithTheContext) {
  EXPECT_EQ(Lost(RunCycles(Of<Destroyed::AfterTheRuntime>("pytorch_e7"), {.warm_up = 0, .cycles = 1})), "use_after_release event");
}

TEST(PytorchE7, RepairedIsSilent) { ExpectSilent(Of<Destroyed::BeforeTheRuntime>("pytorch_e7_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::pytorch_e7_profiler_events
