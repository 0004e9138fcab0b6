// SPDX-License-Identifier: MIT
// by_name_test.cc: steps that call the driver by name, in a program that is linked with the drop-in library.
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <bool repaired>
struct ByName {
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUresult Init() {
    CUresult code = cuStreamCreate(&stream, 0);
    if (code != CUDA_SUCCESS) return code;
    code = cuMemAlloc(&memory, 1 << 20);
    if (code != CUDA_SUCCESS && repaired) (void)cuStreamDestroy(stream);
    return code;
  }
  CUresult Teardown() {
    const CUresult one = cuMemFree(memory);
    const CUresult two = cuStreamDestroy(stream);
    return one == CUDA_SUCCESS ? two : one;
  }
};

TEST(ByName, TheDefectiveFormIsFound) {
  const Audit audit = Sweep(Lifecycle::Of<ByName<false>>("by_name").WithCurrentContext());
  EXPECT_THAT(Texts(audit), ElementsAre("leak stream 1 after cuMemAlloc#1=OUT_OF_MEMORY,refuse"));
  EXPECT_EQ(audit.calls, 4U);
  ASSERT_FALSE(audit.findings.empty());
  EXPECT_THAT(audit.findings.at(0).acquired_stack.at(0), HasSubstr("by_name_test.cc"));
}

TEST(ByName, TheRepairedFormIsSilent) {
  const auto lifecycle = Lifecycle::Of<ByName<true>>("by_name").WithCurrentContext();
  EXPECT_UNWINDS_CLEANLY(lifecycle);
  EXPECT_ALLOCATION_NEUTRAL(lifecycle);
}

// Entry points that are asked for by address are the drop-in's own, so they are seen too.
TEST(ByName, CallsThroughAddressesAreSeen) {
  using Create = CUresult (*)(CUevent*, unsigned);
  Create create = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUdriverProcAddressQueryResult found{};
  void* address = nullptr;
  ASSERT_EQ(cuGetProcAddress("cuEventCreate", &address, 12040, 0, &found), CUDA_SUCCESS);
  create = reinterpret_cast<Create>(address);
  CUevent event = nullptr;
  const auto lifecycle =
      Lifecycle("by_address").WithCurrentContext().Init([&] { return create(&event, 0); }).Teardown([&](DriverRef driver) {
        return driver.EventDestroy(event);
      });
  const Audit audit = Sweep(lifecycle);
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_EQ(audit.calls, 2U);
}

// Between audits the program's own driver answers as before.
TEST(ByName, TheProgramsOwnDriverIsThereAgain) {
  (void)Sweep(Lifecycle::Of<ByName<true>>("by_name").WithCurrentContext());
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext current = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, nullptr);
}

}  // namespace
}  // namespace cuaudit::testing
