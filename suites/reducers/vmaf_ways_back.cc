// SPDX-License-Identifier: MIT
// vmaf_ways_back.cc: what the ways back of pictures, kernels and extractors forget.
#include <memory>

#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

// A stream that is made on demand.
//
// Story   B1: the context is popped right after the stream was made. When that fails, the handle is cleared and the error returned; the
//         stream stays for ever.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982; written anew from the facts.
namespace cuaudit::reducers::vmaf_b1_drain_stream {
namespace {

template <bool repaired>
struct DrainStream {
  CUstream stream = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) {
      LeaveForSure(driver);
      return code;
    }
    code = Leave(driver);
    if (code == CUDA_SUCCESS) return code;
    if (repaired) (void)driver.StreamDestroy(stream);
    (void)Leave(driver);
    stream = nullptr;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    return Inside(driver, [&] { return Destroy(driver, &stream); });
  }
};

TEST(VmafB1, LosesTheStreamWhenThePopFails) {
  ExpectVectors(Lifecycle::Of<DrainStream<false>>("vmaf_b1").Prepare(MakeTheContext), {{"cuCtxPopCurrent#1=UNKNOWN,refuse", "stream 1"}});
}

TEST(VmafB1, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<DrainStream<true>>("vmaf_b1_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b1_drain_stream

// One picture, allocated in nine steps.
//
// Story   B2: an event, a record, a plane or the final pop fails; the error is returned, and what the earlier steps made stays.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982; written anew from the facts.
namespace cuaudit::reducers::vmaf_b2_picture {
namespace {

template <bool repaired>
Lifecycle OnePicture(const char* name) {
  struct State {
    Picture<repaired> picture;
    CUresult Init(DriverRef driver) { return picture.Allocate(driver); }
    CUresult Teardown(DriverRef driver) { return picture.Free(driver); }
  };
  return Lifecycle::Of<State>(name).Prepare(MakeTheContext);
}

TEST(VmafB2, LosesWhatTheEarlierStepsMade) {
  ExpectVectors(OnePicture<false>("vmaf_b2"), {
                                                  {"cuEventCreate#1=OUT_OF_MEMORY,refuse", "stream 1"},
                                                  {"cuEventCreate#2=OUT_OF_MEMORY,refuse", "event 1, stream 1"},
                                                  {"cuEventRecord#1=INVALID_CONTEXT,refuse", "event 2, stream 1"},
                                                  {"cuMemAllocPitch#1=OUT_OF_MEMORY,refuse", "event 2, stream 1"},
                                                  {"cuMemAllocPitch#2=OUT_OF_MEMORY,refuse", "device_memory 1, event 2, stream 1"},
                                                  {"cuMemAllocPitch#3=OUT_OF_MEMORY,refuse", "device_memory 2, event 2, stream 1"},
                                                  {"cuCtxPopCurrent#1=UNKNOWN,refuse", "device_memory 3, event 2, stream 1"},
                                              });
}

TEST(VmafB2, RepairedIsSilent) { ExpectSilent(OnePicture<true>("vmaf_b2_repaired")); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b2_picture

// A pool of pictures, filled in a loop.
//
// Story   B4: slot k fails; its picture unwinds itself, but all earlier slots stay with their streams, events and planes, and the caller is
//         handed the half-built pool, whose later close crashes.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982; written anew from the facts. Slot array and mutex are host
//         memory, which the C program picture_pool.c shows.
namespace cuaudit::reducers::vmaf_b4_picture_pool {
namespace {

constexpr int kSlots = 3;

struct Pool {
  Picture<true> slot[kSlots];
};

template <bool repaired>
struct PicturePool {
  std::unique_ptr<Pool> storage;  // so that host memory is no part of this case
  Pool* pool = nullptr;           // what the caller is handed

  CUresult Init(Cycle& cycle) {
    cycle.Output("pool", &pool);
    storage = std::make_unique<Pool>();
    int made = 0;
    CUresult code = CUDA_SUCCESS;
    while (code == CUDA_SUCCESS && made < kSlots) {
      code = storage->slot[made].Allocate(cycle.driver());
      if (code == CUDA_SUCCESS) ++made;
    }
    if (repaired && code != CUDA_SUCCESS) {
      while (made > 0) {
        Picture<true>& picture = storage->slot[--made];
        const bool freed = picture.Free(cycle.driver()) == CUDA_SUCCESS || picture.Free(cycle.driver()) == CUDA_SUCCESS;
        if (!freed) (void)picture.Release(cycle.driver());  // nobody comes back for it
      }
      return code;
    }
    pool = storage.get();
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (Picture<true>& picture : pool->slot) code = First(code, picture.Free(driver));
    return code;
  }
};

TEST(VmafB4, LosesTheEarlierSlotsAndHandsOutHalfAPool) {
  const auto lifecycle = Lifecycle::Of<PicturePool<false>>("vmaf_b4").Prepare(MakeTheContext);
  const std::vector<std::string> earlier = {"", "device_memory 3, event 2, stream 1, ", "device_memory 6, event 4, stream 2, "};
  for (int k = 0; k < kSlots; ++k) {
    const std::string fault = "cuStreamCreate#" + std::to_string(k + 1) + "=OUT_OF_MEMORY,refuse";
    EXPECT_EQ(Lost(Replay(lifecycle, {fault})), earlier[static_cast<std::size_t>(k)] + "output_on_failure") << fault;
    const std::string last = "cuMemAllocPitch#" + std::to_string(3 * k + 3) + "=OUT_OF_MEMORY,refuse";
    EXPECT_EQ(Lost(Replay(lifecycle, {last})), earlier[static_cast<std::size_t>(k)] + "output_on_failure") << last;
  }
}

// The caller takes the half-built pool for a whole one and closes it.
struct ClosesHalfAPool : PicturePool<false> {
  CUresult Init(Cycle& cycle) {
    const CUresult code = PicturePool<false>::Init(cycle);
    if (code != CUDA_SUCCESS) pool = nullptr;
    return code;
  }
};

TEST(VmafB4, TheLaterCloseCrashes) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER(kCannotBeForked);
  const auto lifecycle = Lifecycle::Of<ClosesHalfAPool>("vmaf_b4_close").Prepare(MakeTheContext).TeardownAfterFailedInit();
  EXPECT_EQ(Lost(Replay(lifecycle, {"cuStreamCreate#2=OUT_OF_MEMORY,refuse"}, {.isolate = true})), CUAUDIT_DEATH_THROUGH_NULL);
}

TEST(VmafB4, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<PicturePool<true>>("vmaf_b4_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b4_picture_pool

// Both ways to initialise the state: in a context of the caller, and in the primary context.
//
// Story   B7: both make a stream and then pop the context; when the pop fails the stream stays. The variant that retains the primary
//         context gives it back, so that the lost stream dies with it once nobody else holds the context.
// Source  https://github.com/lusoris/vmaf, docs/adr/0960, A.1; written anew from the facts.
namespace cuaudit::reducers::vmaf_b7_state_init {
namespace {

template <bool repaired, bool retains>
struct State {
  CUstream stream = nullptr;
  bool held = false;

  CUresult Init(DriverRef driver) {
    CUcontext context = TheContext();
    CUresult code = retains ? driver.DevicePrimaryCtxRetain(&context, 0) : CUDA_SUCCESS;
    if (code != CUDA_SUCCESS) return code;
    code = driver.CtxPushCurrent(context);
    if (code == CUDA_SUCCESS) {
      code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      if (code != CUDA_SUCCESS) {
        LeaveForSure(driver);
      } else {
        code = Leave(driver);
        if (code != CUDA_SUCCESS && repaired) (void)driver.StreamDestroy(stream);
        if (code != CUDA_SUCCESS) (void)Leave(driver);
      }
    }
    if (code != CUDA_SUCCESS && retains) (void)driver.DevicePrimaryCtxRelease(0);
    held = retains && code == CUDA_SUCCESS;
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult code = Inside(driver, [&] { return Destroy(driver, &stream); });
    if (stream != nullptr || !std::exchange(held, false)) return code;
    return First(code, driver.DevicePrimaryCtxRelease(0));
  }
};

TEST(VmafB7, LosesTheStreamInTheCallersContext) {
  ExpectVectors(Lifecycle::Of<State<false, false>>("vmaf_b7_given").Prepare(MakeTheContext),
                {{"cuCtxPopCurrent#1=UNKNOWN,refuse", "stream 1"}});
}

TEST(VmafB7, LosesTheStreamInThePrimaryContext) {
  ExpectVectors(Lifecycle::Of<State<false, true>>("vmaf_b7_primary").Prepare(MakeTheContext),
                {{"cuCtxPopCurrent#1=UNKNOWN,refuse", "stream 1"}});
}

TEST(VmafB7, RepairedIsSilent) {
  ExpectSilent(Lifecycle::Of<State<true, false>>("vmaf_b7_given_repaired").Prepare(MakeTheContext));
  ExpectSilent(Lifecycle::Of<State<true, true>>("vmaf_b7_primary_repaired").Prepare(MakeTheContext));
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b7_state_init

// A stream and two events for a kernel.
//
// Story   B8: the first event, the second or the pop fails; stream and events so far stay. It had been documented as intentional.
// Source  https://github.com/lusoris/vmaf, docs/adr/1336; written anew from the facts.
namespace cuaudit::reducers::vmaf_b8_kernel_lifecycle {
namespace {

template <bool repaired>
struct KernelLifecycle {
  CUstream stream = nullptr;
  CUevent submitted = nullptr;
  CUevent finished = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&submitted, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) code = driver.EventCreate(&finished, CU_EVENT_DISABLE_TIMING);
    if (code == CUDA_SUCCESS) {
      code = Leave(driver);
      if (code == CUDA_SUCCESS) return code;
    }
    if (repaired) (void)Release(driver);
    LeaveForSure(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    return Inside(driver, [&] { return Release(driver); });
  }
  CUresult Release(DriverRef driver) {
    CUresult code = Destroy(driver, &finished);
    code = First(code, Destroy(driver, &submitted));
    return First(code, Destroy(driver, &stream));
  }
};

TEST(VmafB8, LosesStreamAndEventsSoFar) {
  ExpectVectors(Lifecycle::Of<KernelLifecycle<false>>("vmaf_b8").Prepare(MakeTheContext),
                {{"cuEventCreate#1=OUT_OF_MEMORY,refuse", "stream 1"},
                 {"cuEventCreate#2=OUT_OF_MEMORY,refuse", "event 1, stream 1"},
                 {"cuCtxPopCurrent#1=UNKNOWN,refuse", "event 2, stream 1"}});
}

TEST(VmafB8, RepairedIsSilent) { ExpectSilent(Lifecycle::Of<KernelLifecycle<true>>("vmaf_b8_repaired").Prepare(MakeTheContext)); }

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b8_kernel_lifecycle

// An extractor that is closed by somebody who has another context current, or none.
//
// Story   B12: close works in whatever context is current. With none or a foreign one it gives up: module, stream and events stay. A
//         close that makes its own context current and leaves it so changes what the caller works in.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982 and neighbours; written anew from the facts. No call fails: cycles show it.
namespace cuaudit::reducers::vmaf_b12_extractor_close {
namespace {

constexpr char kModule[] = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry extract() { ret; }\n";

enum class Close { GivesUp, NeverLeaves, EntersAndLeaves };

template <Close how>
struct Extractor {
  CUmodule module = nullptr;
  CUstream stream = nullptr;
  CUevent event[2] = {};

  CUresult Init(DriverRef driver) {
    CUresult code = Enter(driver);
    if (code != CUDA_SUCCESS) return code;
    code = driver.ModuleLoadData(&module, kModule);
    if (code == CUDA_SUCCESS) code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    for (CUevent& one : event) {
      if (code == CUDA_SUCCESS) code = driver.EventCreate(&one, 0);
    }
    if (code == CUDA_SUCCESS) {
      code = Leave(driver);
      if (code == CUDA_SUCCESS) return code;
    }
    (void)Release(driver);
    LeaveForSure(driver);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    if constexpr (how == Close::EntersAndLeaves) {
      return Inside(driver, [&] { return Release(driver); });
    }
    CUcontext current = nullptr;
    CUresult code = driver.CtxGetCurrent(&current);
    if constexpr (how == Close::GivesUp) return code != CUDA_SUCCESS || current != TheContext() ? code : Release(driver);
    if (code == CUDA_SUCCESS) code = Enter(driver);
    return code == CUDA_SUCCESS ? Release(driver) : code;
  }
  CUresult Release(DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    for (CUevent& one : event) code = First(code, Destroy(driver, &one));
    code = First(code, Destroy(driver, &stream));
    return module == nullptr ? code : First(code, driver.ModuleUnload(std::exchange(module, nullptr)));
  }
};

// The caller's own context is current when close is called.
CUresult MakeBothContexts(DriverRef driver) {
  CUcontext foreign = nullptr;
  const CUresult code = MakeTheContext(driver);
  return code == CUDA_SUCCESS ? driver.CtxCreate(&foreign, nullptr, 0, 0) : code;
}

TEST(VmafB12, LosesEverythingWithoutACurrentContext) {
  const auto lifecycle = Lifecycle::Of<Extractor<Close::GivesUp>>("vmaf_b12").Prepare(MakeTheContext);
  EXPECT_EQ(Lost(RunCycles(lifecycle, kFourCycles)), "event 6, module 3, stream 3");
}

TEST(VmafB12, LosesEverythingInAForeignContext) {
  const auto lifecycle = Lifecycle::Of<Extractor<Close::GivesUp>>("vmaf_b12_foreign").Prepare(MakeBothContexts);
  EXPECT_EQ(Lost(RunCycles(lifecycle, kFourCycles)), "event 6, module 3, stream 3");
}

TEST(VmafB12, DoesNotRestoreTheCallersContext) {
  const auto lifecycle = Lifecycle::Of<Extractor<Close::NeverLeaves>>("vmaf_b12_never_leaves").Prepare(MakeBothContexts);
  EXPECT_EQ(Lost(RunCycles(lifecycle, kFourCycles)), "context_stack_unbalanced context_stack_entry");
}

TEST(VmafB12, RepairedIsSilent) {
  ExpectSilent(Lifecycle::Of<Extractor<Close::EntersAndLeaves>>("vmaf_b12_repaired").Prepare(MakeBothContexts));
  ExpectSilent(Lifecycle::Of<Extractor<Close::EntersAndLeaves>>("vmaf_b12_repaired_alone").Prepare(MakeTheContext));
}

}  // namespace
}  // namespace cuaudit::reducers::vmaf_b12_extractor_close
