// SPDX-License-Identifier: MIT
// vmaf_b12_extractor_close.cc: an extractor that is closed by somebody who has another context current, or none.
//
// Story   B12: close works in whatever context is current. With none or a foreign one it gives up: module, stream and events stay. A
//         close that makes its own context current and leaves it so changes what the caller works in.
// Source  https://github.com/lusoris/vmaf, docs/adr/0982 and neighbours; written anew from the facts. No call fails: cycles show it.
#include "suites/reducers/scoped_current.h"
#include "suites/reducers/vectors.h"

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
