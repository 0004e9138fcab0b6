// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/trace.h"

namespace cuaudit::testing::green_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t kGreen = 0x6e;
constexpr std::uint64_t kView = 0x6f;
constexpr std::uint64_t kStream = 0x51;
constexpr std::uint64_t kPlain = 0x52;
constexpr std::uint64_t kMemory = 0x1000;
constexpr std::uint64_t kLegacy = 1;  // CU_STREAM_LEGACY

void CreateGreen(Trace& t) { t.Call(CallId::GreenCtxCreate).Out(0, kGreen).In(1, 0x77).In(2, 0).In(3, 1); }
void DestroyGreen(Trace& t) { t.Call(CallId::GreenCtxDestroy).In(0, kGreen); }

Step AllocAsync(Trace& t, std::uint64_t address, std::uint64_t stream) {
  return t.Call(CallId::MemAllocAsync).Out(0, address).In(1, 0x100).In(2, stream);
}

#if CUDA_VERSION >= 12050
TEST(GreenContexts, TakeTheirStreamsWithThem) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, kStream).In(1, kGreen).In(2, 1).In(3, 0);
  t.CreateStream(kPlain);
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1", "stream 1 orphaned"));
}

TEST(GreenContexts, LeaveNothingWhenTheirStreamsWentFirst) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, kStream).In(1, kGreen).In(2, 1).In(3, 0);
  t.DestroyStream(kStream);
  DestroyGreen(t);
  t.ReleasePrimary();
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, LeaveMemoryOfTheirStreamsToItsPool) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::GreenCtxStreamCreate).Out(0, kStream).In(1, kGreen).In(2, 1).In(3, 0);
  AllocAsync(t, kMemory, kStream).Context(0);
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned", "stream_ordered_memory 1"));
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned", "stream_ordered_memory 1"));
}
#endif

TEST(GreenContexts, LeaveMemoryThatWasTakenWhileTheyWereCurrent) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Alloc(kMemory).Context(kView);
  t.CreateStream(kStream).Context(kView);
  DestroyGreen(t);
  t.Free(kMemory);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream 1 orphaned"));
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, KeepThePrimaryContextsObjectsAlive) {
  Trace t;
  t.Retain();
  t.CreateStream(kPlain);
  CreateGreen(t);
  t.ReleasePrimary();
  t.DestroyStream(kPlain);
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, TheLastOfThemEndsThePrimaryContext) {
  Trace t;
  t.Retain();
  t.CreateStream(kPlain);
  CreateGreen(t);
  t.ReleasePrimary();
  DestroyGreen(t);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream 1 orphaned"));
}

// As H200s have it (contract questions green_stream.standard_*).
TEST(GreenContexts, HaveOneStandardStreamUnderBothItsNamesAndACaptureTakesIt) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Push(kView);
  t.Push(kView).Thread(kThread + 1);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0);
  AllocAsync(t, 0x1000, kLegacy);
  AllocAsync(t, 0x2000, 0);
  AllocAsync(t, 0x3000, kLegacy).Thread(kThread + 1);
  t.Pop(kView).Thread(kThread + 1);
  t.Pop(kView);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "green_context 1"));
  AllocAsync(t, 0x4000, 0);  // on the primary context's
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream_ordered_memory 1", "green_context 1"));
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(GreenContexts, EndTheCaptureOfTheirStandardStream) {
  Trace t;
  t.Retain();
  CreateGreen(t);
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Push(kView);
  t.Call(CallId::StreamBeginCapture_v2).In(0, 0);
  t.Pop(kView);
  DestroyGreen(t);
  CreateGreen(t);  // at the same place
  t.Call(CallId::CtxFromGreenCtx).Out(0, kView).In(1, kGreen);
  t.Push(kView);
  AllocAsync(t, 0x1000, 0);
  t.Pop(kView);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("primary_context 1", "stream_ordered_memory 1", "green_context 1"));
}

}  // namespace
}  // namespace cuaudit::testing::green_test
