// SPDX-License-Identifier: MIT
// ffmpeg_e1_callers_context.cc: a hardware device that works in a context which its caller made.
//
// Story   E1: the device is made around the caller's context and destroys it at the end as if it had made it. The caller destroys it,
//         too. The same where it took the caller's reference of the primary context for its own.
// Source  https://github.com/FFmpeg/FFmpeg, libavutil/hwcontext_cuda.c; written anew from the facts of the fix.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

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
