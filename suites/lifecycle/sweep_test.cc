// SPDX-License-Identifier: MIT
#include <cuaudit/gtest.h>
#include <gmock/gmock.h>

#include <iostream>

namespace cuaudit::testing {
namespace {

struct TwoStreams {
  bool repaired;
  CUstream first = nullptr;
  CUstream second = nullptr;

  CUresult Init(DriverRef driver) {
    CUresult code = driver.StreamCreate(&first, 0);
    if (code != CUDA_SUCCESS) return code;
    code = driver.StreamCreate(&second, 0);
    if (code != CUDA_SUCCESS && repaired) (void)driver.StreamDestroy(first);
    return code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.StreamDestroy(first);
    const CUresult two = driver.StreamDestroy(second);
    return one != CUDA_SUCCESS ? one : two;
  }
};

TEST(Sweep, FindsTheStreamThatAFailedInitLoses) {
  const auto streams = Lifecycle::Of<TwoStreams>("two_streams", false).WithCurrentContext();
  const Audit audit = Sweep(streams);
  EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
  std::cout << audit.Text();
}

TEST(Sweep, IsSilentOnTheRepairedForm) {
  const auto streams = Lifecycle::Of<TwoStreams>("two_streams", true).WithCurrentContext();
  EXPECT_UNWINDS_CLEANLY(streams);
  EXPECT_ALLOCATION_NEUTRAL(streams);
}

}  // namespace
}  // namespace cuaudit::testing
