// SPDX-License-Identifier: MIT
// Programs that believe what the plan told them: of an object that is gone, or of one that still lives.
#include "suites/support/cases/case.h"

namespace cuaudit::testing::good_faith_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CUAUDIT_CASE(UseAfterRelease, MemoryWhoseFreeWasSaidToHaveFailed) {
  Trace t;
  t.Alloc(0x1000);
  t.Free(0x1000).After();
  t.Call(CallId::MemsetD8_v2).In(0, 0x1010).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(UsedAfterFree, MemoryWhoseFreeWasSaidToHaveFailed) {
  Trace t;
  t.Alloc(0x1000);
  const Step free = t.Free(0x1000).After();
  const Step launch = t.Call(CallId::LaunchKernel).In(8, 0x5);
  t.Misuse(driver::MisuseRule::UsedAfterFree, driver::Kind::DeviceMemory, 0x1000, 64, launch.begin(), free.begin());
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(UseAfterRelease, AStreamWhoseDestructionWasRefusedAndWhoseContextIsGone) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Refused(CUDA_ERROR_INVALID_CONTEXT);
  t.ReleasePrimary();
  t.Call(CallId::StreamSynchronize).In(0, 0x10).Fails(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1 release_refused"));
}

CUAUDIT_CASE(UseAfterRelease, ACaptureIntoAGraphWhoseEndWasSaidToHaveFailed) {
  Trace t;
  t.Alloc(0x10000);
  t.Call(CallId::GraphCreate).Out(0, 0x61);
  t.Call(CallId::StreamBeginCaptureToGraph).In(0, 0x8).In(1, 0x61);
  t.Call(CallId::MemsetD8Async).In(0, 0x10000).In(3, 0x8);
  t.Call(CallId::StreamEndCapture).In(0, 0x8).Out(1, 0x61).After();
  t.Free(0x10000);
  t.Call(CallId::GraphInstantiateWithFlags).Out(0, 0x63).In(1, 0x61);
  t.Call(CallId::GraphLaunch).In(0, 0x63);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(ContextStack, APopThatWasSaidToHaveFailedIsTriedAgain) {
  Trace t;
  t.Push(0xa).Context(0xc);
  t.Pop(0xa).Context(0xa).After(CUDA_ERROR_INVALID_CONTEXT);
  t.Pop(0xc).Context(0xc);  // takes the caller's, in good faith
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

CUAUDIT_CASE(Orphaned, AResetThatWasRefused) {
  Trace t;
  t.Retain();
  t.CreateStream(0x10);
  t.Call(CallId::DevicePrimaryCtxReset_v2).In(0, 0).Refused(CUDA_ERROR_INVALID_DEVICE);
  t.DestroyStream(0x10);
  t.ReleasePrimary();
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_THAT(Left(ledger), IsEmpty());
}

}  // namespace
}  // namespace cuaudit::testing::good_faith_test
