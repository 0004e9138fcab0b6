// SPDX-License-Identifier: MIT
// benign_test.cc: a benign declaration excuses the call that it names, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuaudit/lifecycle.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::benign_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::StartsWith;

// The first event is optional; the second one is not.
TEST(Swallowed, OneOptionalCallExcusesNoOther) {
  CUevent event[2] = {};
  const auto lifecycle = Lifecycle("two_events")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) {
                               for (CUevent& one : event) {
                                 if (driver.EventCreate(&one, 0) != CUDA_SUCCESS) one = nullptr;
                               }
                               return CUDA_SUCCESS;
                             })
                             .Teardown([&](DriverRef driver) {
                               for (CUevent& one : event) {
                                 if (one != nullptr && driver.EventDestroy(one) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
                               }
                               return CUDA_SUCCESS;
                             })
                             .AnyCode()
                             .Benign("cuEventCreate#1");
  const Audit audit = Sweep(lifecycle, {.calls = {"cuEventCreate"}});
  EXPECT_THAT(Texts(audit), ElementsAre("swallowed after cuEventCreate#2=OUT_OF_MEMORY,refuse")) << audit.Text();
}

// The stream is optional, an event stands in for it, and nobody hears that the event could not be destroyed.
TEST(Swallowed, AReleaseAfterABenignFault) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const auto lifecycle = Lifecycle("falls_back")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) {
                               stream = nullptr;
                               event = nullptr;
                               if (driver.StreamCreate(&stream, 0) == CUDA_SUCCESS) return CUDA_SUCCESS;
                               stream = nullptr;
                               return driver.EventCreate(&event, 0);
                             })
                             .Teardown([&](DriverRef driver) {
                               if (event != nullptr) (void)driver.EventDestroy(event);
                               return stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(stream);
                             })
                             .Benign("cuStreamCreate");
  const Audit audit = Replay(lifecycle, {"cuStreamCreate#1=OUT_OF_MEMORY,refuse", "cuEventDestroy#1=INVALID_CONTEXT,refuse"});
  EXPECT_THAT(Texts(audit), Contains(StartsWith("swallowed after cuStreamCreate#1"))) << audit.Text();
}

}  // namespace
}  // namespace cuaudit::testing::benign_test
