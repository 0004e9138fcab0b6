// SPDX-License-Identifier: MIT
// pytorch_e7_profiler_events.cc: a profiler whose events live longer than the runtime.
//
// Story   E7: the profiler keeps events in an object that is destroyed at the very end, when the runtime has given back the device's
//         primary context; destroying the events then names what is gone. The repair lets go of them before, or does without.
// Source  https://github.com/pytorch/pytorch; written anew from the facts of the fix.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

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
