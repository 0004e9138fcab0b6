// SPDX-License-Identifier: MIT
// What a stream capture that is over, or was never there, no longer takes over: memory acquired then is the program's own.
#include "suites/support/cases/case.h"

namespace cuaudit::testing::captures_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;

constexpr std::uint64_t kOrigin = 0x5;
constexpr std::uint64_t kFork = 0x99;
constexpr std::uint64_t kEvent = 0xe;
constexpr std::uint64_t kMemory = 0x7000;

void AllocAsync(Trace& t, std::uint64_t stream) { t.Call(CallId::MemAllocAsync).Out(0, kMemory).In(1, 64).In(2, stream); }

CUAUDIT_CASE(Leak, AForkedCaptureEndsWithTheStreamThatItBeganOn) {
  Trace t;
  t.CreateStream(kOrigin);
  t.CreateStream(kFork);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  t.DestroyStream(kOrigin);
  t.CreateStream(kOrigin);  // its handle comes back, its capture does not
  AllocAsync(t, kFork);
  t.DestroyStream(kFork);
  t.DestroyStream(kOrigin);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AnEventRecordedAnewLeadsIntoNoCapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, 0x77);  // in a stream that is not captured
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

// An external recording is a node; the event leads nowhere.
CUAUDIT_CASE(Leak, AnEventRecordedByANodeLeadsIntoNoCapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecordWithFlags).In(0, kEvent).In(1, kOrigin).In(2, CU_EVENT_RECORD_EXTERNAL);
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AnEventRecordedOfAGreenContextLeadsIntoNoCapture) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::GreenCtxRecordEvent).In(0, 0x77).In(1, kEvent);  // whose streams are not captured
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AnEventWithTheHandleOfOneThatWasCaptured) {
  Trace t;
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::EventCreate).Out(0, kEvent).In(1, 0);
  t.Call(CallId::EventRecord).In(0, kEvent).In(1, kOrigin);
  t.Call(CallId::EventDestroy_v2).In(0, kEvent);
  t.Call(CallId::EventCreate).Out(0, kEvent).In(1, 0);
  t.Call(CallId::StreamWaitEvent).In(0, kFork).In(1, kEvent);
  AllocAsync(t, kFork);
  t.Call(CallId::EventDestroy_v2).In(0, kEvent);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

// The graph that would free it is never launched.
CUAUDIT_CASE(Leak, AFreeUnderCaptureFreesNothing) {
  Trace t;
  AllocAsync(t, kFork);
  t.Call(CallId::StreamBeginCapture_v2).In(0, kOrigin);
  t.Call(CallId::MemFreeAsync).In(0, kMemory).In(1, kOrigin);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("stream_ordered_memory 1"));
}

CUAUDIT_CASE(Leak, AGraphThatWasCapturedIntoIsTheOneThatWasMade) {
  Trace t;
  t.Call(CallId::GraphCreate).Out(0, 0x61).Stack(7);
  t.Call(CallId::StreamBeginCaptureToGraph).In(0, kOrigin).In(1, 0x61);
  t.Call(CallId::StreamEndCapture).In(0, kOrigin).Out(1, 0x61).Stack(8);
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("graph 1"));
  ASSERT_EQ(ledger.objects.size(), 1U);
  EXPECT_EQ(ledger.objects[0].acquired.stack, 7U);
}

}  // namespace
}  // namespace cuaudit::testing::captures_test
