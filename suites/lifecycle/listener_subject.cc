// SPDX-License-Identifier: MIT
// listener_subject.cc: somebody else's tests, for listener_test to run: what each leaves behind, its name says. With IDLE: none of them
// calls the driver, and all are skipped where SKIP_ALL is set.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>

#ifdef IDLE

namespace {

void MaySkip() {
  if (std::getenv("SKIP_ALL") != nullptr) GTEST_SKIP() << "as asked";
}

TEST(Idle, One) { MaySkip(); }
TEST(Idle, Two) { MaySkip(); }
TEST(Idle, DISABLED_Three) {}

}  // namespace

#else

namespace {

class Leaves : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  static void TearDownTestSuite() { ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS); }
};

TEST_F(Leaves, Nothing) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Leaves, AStream) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
}

TEST_F(Leaves, NothingButReleasesTwice) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_NE(cuEventDestroy(event), CUDA_SUCCESS);
}

// Kept for the process, as caches are.
TEST(Keeps, AContextTheFirstTime) {
  static CUcontext context = nullptr;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  if (context == nullptr) {
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

// Nothing happens in it: the listener must not count it as checked (listener_test.cc).
TEST(WithoutDriver, CallsNothing) {}

TEST(WithoutDriver, IsSkipped) { GTEST_SKIP() << "for a reason"; }

using Skipped = Leaves;

TEST_F(Skipped, ButLeavesAStream) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  GTEST_SKIP() << "too late";
}

// As many calls as fit into the room of narrow_listener_subject once, but not twice; or more.
void Call(int times) {
  int count = 0;
  for (int i = 0; i < times; ++i) ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
}

using Room = Leaves;

TEST_F(Room, IsFilled) { Call(2500); }
TEST_F(Room, IsFilledAgain) { Call(2500); }
TEST_F(Room, IsFilledAndAStreamLeft) {
  Call(2500);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
}

using Overrun = Leaves;

TEST_F(Overrun, OfTooManyCalls) { Call(5000); }
TEST_F(Overrun, ThenNothingIsLeft) { Call(1); }
TEST_F(Overrun, ThenAStreamIsLeft) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
}

// Objects of a suite, with which its tests do what they like.
class Suites : public Leaves {
 protected:
  static void SetUpTestSuite() {
    Leaves::SetUpTestSuite();
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  }
  static CUevent event;
};
CUevent Suites::event = nullptr;

using SuitesEvent = Suites;

TEST_F(SuitesEvent, IsUsed) { Call(2500); }
TEST_F(SuitesEvent, IsDestroyedByATest) {
  Call(2500);
  ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
}
// The suite has a reference of its own, so this one is not the last.
TEST_F(SuitesEvent, ContextIsRetainedAndReleased) {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

class SuiteReleasesAgain : public Suites {
 protected:
  static void TearDownTestSuite() {
    EXPECT_NE(cuEventDestroy(event), CUDA_SUCCESS);
    Leaves::TearDownTestSuite();
  }
};

TEST_F(SuiteReleasesAgain, WhatItsTestReleased) { ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS); }

// References of one object, of which each test gives back one: no call of theirs ends it but the last.
class SuitesReferences : public Leaves {
 protected:
  static void SetUpTestSuite() {
    Leaves::SetUpTestSuite();
    const auto destroy = [](void*) {};
    ASSERT_EQ(cuUserObjectCreate(&object, nullptr, destroy, 3, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
  }
  static CUuserObject object;
};
CUuserObject SuitesReferences::object = nullptr;

TEST_F(SuitesReferences, AreThree) {
  Call(2500);
  ASSERT_EQ(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
}
TEST_F(SuitesReferences, AreTwo) {
  Call(2500);
  ASSERT_EQ(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
}
TEST_F(SuitesReferences, AreOne) { ASSERT_EQ(cuUserObjectRelease(object, 1), CUDA_SUCCESS); }

// All calls of this one are kept for the suite; what is wrong with them is told of it alone.
using MisuseBesideReferences = SuitesReferences;

TEST_F(MisuseBesideReferences, OfItsOwnEvent) {
  CUevent event = nullptr;
  ASSERT_EQ(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
  EXPECT_NE(cuEventDestroy(event), CUDA_SUCCESS);
}
TEST_F(MisuseBesideReferences, IsNoneOfTheSuites) { ASSERT_EQ(cuUserObjectRelease(object, 2), CUDA_SUCCESS); }

using SuitesEventTwice = Suites;

TEST_F(SuitesEventTwice, IsReleasedByOneTest) { ASSERT_EQ(cuEventDestroy(event), CUDA_SUCCESS); }
TEST_F(SuitesEventTwice, AndByTheNext) { EXPECT_NE(cuEventDestroy(event), CUDA_SUCCESS); }

class SuiteLeaves : public Leaves {
 protected:
  static void SetUpTestSuite() {
    Leaves::SetUpTestSuite();
    CUevent event = nullptr;
    ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  }
};

TEST_F(SuiteLeaves, NothingInItsTest) {
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
}

}  // namespace

#endif
