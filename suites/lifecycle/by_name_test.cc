// SPDX-License-Identifier: MIT
// by_name_test.cc: steps that call the driver by name, in a program that is linked with the drop-in library.
#include <cuaudit/block.h>
#include <cuaudit/gtest.h>
#include <cuaudit/mark.h>
#include <cuaudit/watch.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::by_name_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

// Every run destroys a null handle at one place. The failing path does the same at another place, or calls the same function.
template <bool by_name, bool elsewhere>
struct DestroysNull {
  CUresult Init(DriverRef driver) {
    CUstream stream = nullptr;
    Usual(driver);
    CUresult code = by_name ? cuStreamCreate(&stream, 0) : driver.StreamCreate(&stream, 0);
    if (code == CUDA_SUCCESS) return by_name ? cuStreamDestroy(stream) : driver.StreamDestroy(stream);
    if (elsewhere) {
      (void)(by_name ? cuEventDestroy(nullptr) : driver.EventDestroy(nullptr));
    } else {
      Usual(driver);
    }
    return code;
  }
  [[gnu::noinline]] static void Usual(DriverRef driver) { (void)(by_name ? cuEventDestroy(nullptr) : driver.EventDestroy(nullptr)); }
};

template <bool by_name, bool elsewhere>
std::vector<std::string> TextsOfNull() {
  return Texts(Sweep(Lifecycle::Of<DestroysNull<by_name, elsewhere>>("null").WithCurrentContext().Benign("cuEventDestroy")));
}

// The gate and the drop-in are no caller: otherwise all calls of one entry point come from the same place.
TEST(ByName, TwoCallersOfOneEntryPointAreTwoPlaces) {
  EXPECT_THAT((TextsOfNull<true, true>()), ElementsAre("null_released event 1 after cuStreamCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT((TextsOfNull<true, false>()), IsEmpty());
}

TEST(ByReference, TwoCallersOfOneEntryPointAreTwoPlaces) {
  EXPECT_THAT((TextsOfNull<false, true>()), ElementsAre("null_released event 1 after cuStreamCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT((TextsOfNull<false, false>()), IsEmpty());
}

// A pool that tells of its blocks by name; where it goes wrong is the tests' own.
struct Segment {
  CUdeviceptr base = 0;
  CUresult Init() { return cuMemAlloc(&base, 1 << 16); }
  CUresult Teardown() { return cuMemFree(std::exchange(base, 0)); }
};
struct KeepsABlock : Segment {
  void Work() { cuaudit_block_out(base + 512, 512); }
};
struct WritesWhatItGaveBack : Segment {
  CUresult Work() {
    cuaudit_block_out(base + 512, 512);
    cuaudit_block_back(base + 512);
    return cuMemsetD8(base + 700, 1, 16);
  }
};

TEST(ByName, BlocksOfAPoolAreJudged) {
  const Audit leak = RunCycles(Lifecycle::Of<KeepsABlock>("keeps_a_block").WithCurrentContext(), {.warm_up = 0, .cycles = 1});
  EXPECT_THAT(Texts(leak), ElementsAre("growth block 1"));
  ASSERT_FALSE(leak.findings.empty());
  EXPECT_EQ(leak.findings[0].acquired, "cuaudit_block_out");
  EXPECT_THAT(leak.findings[0].acquired_stack.at(0), HasSubstr("by_name_test.cc"));

  const Audit use = RunCycles(Lifecycle::Of<WritesWhatItGaveBack>("writes").WithCurrentContext(), {.warm_up = 0, .cycles = 1});
  EXPECT_THAT(Texts(use), ElementsAre(::testing::StartsWith("use_after_release block")));
  ASSERT_FALSE(use.findings.empty());
  EXPECT_EQ(use.findings[0].where, "cuMemsetD8");
}

TEST(ByName, BlocksOfAPoolAreWatched) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  Segment segment;
  ASSERT_EQ(segment.Init(), CUDA_SUCCESS);
  {
    Watch watch;
    ASSERT_EQ(watch.why_not(), nullptr);
    watch.Begin();
    cuaudit_block_out(segment.base, 512);
    EXPECT_EQ(cuMemsetD8(segment.base, 1, 512), CUDA_SUCCESS);
    cuaudit_block_back(segment.base);
    EXPECT_THAT(Texts(watch.End("in order")), ::testing::IsEmpty());
    watch.Begin();
    cuaudit_block_out(segment.base, 512);
    cuaudit_block_out(segment.base + 256, 512);
    cuaudit_block_back(segment.base);
    EXPECT_EQ(cuMemsetD8(segment.base, 1, 16), CUDA_SUCCESS);
    EXPECT_THAT(Texts(watch.End("not in order")),
                ::testing::UnorderedElementsAre("handed_out_twice block 1", "use_after_release block 1", "leak block 1"));
  }
  EXPECT_EQ(segment.Teardown(), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

struct Boundary {
  Watch* watch;
  Audit first;
};

// A span ends and the next one begins inside of a call.
TEST(ByName, ACallUnderWayBelongsToTheSpanInWhichItReturns) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  const auto cross = [](void* data) {
    Boundary& boundary = *static_cast<Boundary*>(data);
    boundary.first = boundary.watch->End("first");
    cuaudit_block_out(0x1000, 512);  // between the spans, and after the begin of the call that returns in the next
    cuaudit_block_back(0x1000);
    boundary.watch->Begin();
  };
  Audit second;
  Audit third;
  Boundary boundary = {};
  {
    Watch watch;
    boundary.watch = &watch;
    watch.Begin();
    watch.Begin();
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
    ASSERT_EQ(cuLaunchHostFunc(stream, cross, &boundary), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
    second = watch.End("second");
    ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
    third = watch.End("around");
  }
  EXPECT_THAT(Texts(boundary.first), ::testing::IsEmpty());
  EXPECT_THAT(Texts(second), ElementsAre("leak event 1"));
  EXPECT_THAT(Texts(third), ::testing::IsEmpty());
  EXPECT_EQ(boundary.first.calls + second.calls, 5U);
  EXPECT_EQ(third.calls, 1U);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

// A block is handed out, and a span begins and ends, inside of a call that began before.
TEST(ByName, WhatIsMadeInsideOfACallIsKnownAfterIt) {
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  const auto hand_out = [](void* data) {
    auto* const watch = static_cast<Watch*>(data);
    cuaudit_block_out(0x1000, 512);
    watch->Begin();
    (void)watch->End("inside");
  };
  {
    Watch watch;
    ASSERT_EQ(cuLaunchHostFunc(stream, hand_out, &watch), CUDA_SUCCESS);
    watch.Begin();
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_THAT(Texts(watch.End("around")), ElementsAre("leak block 1"));
  }
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

TEST(ByName, AnEndWithoutABeginIsAnError) {
  Watch watch;
  EXPECT_EQ(watch.End("nothing").outcome, AuditOutcome::Error);
}

// Nobody audits: nothing happens.
TEST(ByName, BlocksOfNobody) {
  BlockOut(DriverRef(), 512, 512);
  BlockBack(DriverRef(), 512);
  cuaudit_block_out(512, 512);
  cuaudit_block_back(512);
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
}  // namespace cuaudit::testing::by_name_test
