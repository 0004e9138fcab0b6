// SPDX-License-Identifier: MIT
// Blocks that the program's own pool cuts out of device memory, as it tells of them itself (cuaudit/mark.h).
#include "suites/support/cases/case.h"

namespace cuaudit::testing::block_test {
namespace {

using driver::CallId;
using faults::MarkKind;
using ::testing::ElementsAre;

constexpr std::uint64_t kSegment = 0x7f00'0000'0000;

void Out(Trace& t, std::uint64_t address, std::uint64_t bytes = 0x200) { t.Mark(MarkKind::BlockOut).In(0, address).In(1, bytes); }
void Back(Trace& t, std::uint64_t address) { t.Mark(MarkKind::BlockBack).In(0, address); }

CUAUDIT_CASE(Leak, ABlockThatIsNeverGivenBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Out(t, kSegment + 0x200);
  Back(t, kSegment);
  t.Free(kSegment);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("block 1"));
}

// The pool is gone and made anew, at the same address as it happens.
CUAUDIT_CASE(Leak, BlocksThatWereOutWhenTheirMemoryWasFreed) {
  Trace t;
  for (int i = 0; i < 3; ++i) {
    t.Alloc(kSegment, 0x10000);
    Out(t, kSegment);
    t.Free(kSegment);
  }
  const harness::Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("block 3"));
  EXPECT_TRUE(ledger.violations.empty());
}

CUAUDIT_CASE(UseAfterRelease, ABlockIsWrittenAfterItWasGivenBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment + 0x400);
  Back(t, kSegment + 0x400);
  t.Call(CallId::MemsetD8Async).In(0, kSegment + 0x410).In(2, 16).In(3, 0x65);
  const harness::Ledger ledger = t.Fold();
  ASSERT_THAT(Wrong(ledger), ElementsAre("use_after_release block"));
  EXPECT_EQ(ledger.objects[static_cast<std::size_t>(ledger.violations[0].object)].handle, kSegment + 0x400);
}

CUAUDIT_CASE(UseAfterRelease, AKernelIsHandedABlockThatWasGivenBack) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Back(t, kSegment);
  const Step launch = t.Call(CallId::LaunchKernel).In(8, 0x65);
  t.Arguments(launch, {kSegment + 8});
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release block"));
}

CUAUDIT_CASE(UseAfterRelease, ThatTheMemoryItselfIsGoodSaysNothingOfTheBlock) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Back(t, kSegment);
  t.Call(CallId::MemGetAddressRange_v2).Out(0, kSegment).Out(1, 0x10000).In(2, kSegment + 8);
  t.Call(CallId::MemsetD8_v2).In(0, kSegment + 8).In(2, 1);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release block"));
}

// The pool has handed out the front of it again; the old owner uses the rest.
CUAUDIT_CASE(UseAfterRelease, TheRestOfABlockThatWasSplit) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment, 0x1000);
  Back(t, kSegment);
  Out(t, kSegment, 0x200);
  t.Call(CallId::MemsetD8_v2).In(0, kSegment).In(2, 1);
  t.Call(CallId::MemsetD8_v2).In(0, kSegment + 0x800).In(2, 1);
  Back(t, kSegment);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("use_after_release block"));
}

CUAUDIT_CASE(HandedOutTwice, TheSameBlockWhileItIsOut) {
  Trace t;
  t.Alloc(kSegment, 0x10000);
  Out(t, kSegment);
  Out(t, kSegment);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("handed_out_twice block"));
}

CUAUDIT_CASE(HandedOutTwice, APartOfABlockThatIsOut) {
  for (const std::uint64_t at : {0x3ffU, 0x200U, 0x201U, 0x1U}) {
    Trace t;
    t.Alloc(kSegment, 0x10000);
    Out(t, kSegment + 0x200);
    Out(t, kSegment + at);
    EXPECT_THAT(Wrong(t.Fold()), ElementsAre("handed_out_twice block")) << at;
  }
  Trace around;
  Out(around, kSegment + 0x200);
  Out(around, kSegment, 0x1000);
  EXPECT_THAT(Wrong(around.Fold()), ElementsAre("handed_out_twice block"));
}

}  // namespace
}  // namespace cuaudit::testing::block_test
