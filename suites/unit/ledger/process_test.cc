// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/trace.h"

namespace cuaudit::testing::process_test {
namespace {

using driver::CallId;
using faults::ProcessEvent;
using harness::Ledger;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kChild = 200;

TEST(Processes, HaveAccountsOfTheirOwn) {
  Trace t;
  t.CreateStream(0x10);
  t.CreateStream(0x10).Process(kChild);
  t.DestroyStream(0x10).Process(kChild);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), IsEmpty());
  EXPECT_EQ(ledger.objects.at(0).state, harness::State::Live);
  EXPECT_EQ(ledger.objects.at(1).state, harness::State::Released);
}

TEST(Processes, TheChildNeverLeaksWhatItInherited) {
  Trace t;
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Event(ProcessEvent::Exit, kChild).Process(kChild);
  t.DestroyStream(0x10);
  EXPECT_THAT(Left(t.Fold()), IsEmpty());
}

TEST(Processes, TheChildLeaksWhatItMade) {
  Trace t;
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10).Process(kChild);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
  EXPECT_EQ(ledger.objects.at(0).pid, kChild);
}

TEST(Processes, WhatTheParentMadeAfterTheForkIsUnknownToTheChild) {
  Trace t;
  t.CreateStream(0x11);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10);
  t.DestroyStream(0x10).Process(kChild).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle stream"));
}

TEST(Processes, GrandchildrenInheritToo) {
  Trace t;
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Event(ProcessEvent::Fork, 300, kChild);
  t.DestroyStream(0x10).Process(300).Fails(CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_THAT(Wrong(t.Fold()), IsEmpty());
}

TEST(Processes, GrandchildrenInheritOnlyWhatWasThereAtTheFirstFork) {
  Trace t;
  t.CreateStream(0x11);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, 300, kChild);
  t.DestroyStream(0x10).Process(300).Fails(CUDA_ERROR_INVALID_HANDLE);
  EXPECT_THAT(Wrong(t.Fold()), ElementsAre("unknown_handle stream"));
}

TEST(Processes, ANewImageUnderTheSameNumberStartsEmpty) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Start);
  t.DestroyStream(0x10).Fails(CUDA_ERROR_INVALID_HANDLE);
  const Ledger ledger = t.Fold();
  EXPECT_THAT(Wrong(ledger), ElementsAre("unknown_handle stream"));
  EXPECT_THAT(Left(ledger), ElementsAre("stream 1"));
}

TEST(Processes, ANewImageHasNothingThatTheOldOneHadOfTheHost) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Host(faults::HostCall::Map, 0x5000, 4096);
  t.Host(faults::HostCall::ThreadCreate, 0x6000);
  t.Event(ProcessEvent::Start);
  t.Host(faults::HostCall::DescriptorOpen, 0x7);
  EXPECT_THAT(Left(t.Fold()), ElementsAre("file_descriptor 1"));
}

// The probes come up in each image; a forked child goes on with its parent's.
TEST(Processes, ImagesThatCallTheDriverUnseenByTheHostProbesAreCounted) {
  Trace t;
  const auto looks = [&](std::uint32_t pid) { t.Host(faults::HostCall::Looking, 0).Process(pid); };
  t.Event(ProcessEvent::Start);
  looks(kProcess);
  t.CreateStream(0x10);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.CreateStream(0x11).Process(kChild);
  t.Event(ProcessEvent::Start, 300);
  looks(300);  // and calls nothing
  EXPECT_EQ(t.Fold().host_unseen, 0U);
  t.Event(ProcessEvent::Start, 301);  // calls nothing, and nobody looks
  EXPECT_EQ(t.Fold().host_unseen, 0U);
  t.Event(ProcessEvent::Start, 300);  // exec, without our preload
  t.CreateStream(0x12).Process(300);
  EXPECT_EQ(t.Fold().host_unseen, 1U);
}

TEST(Processes, WhatTheRuntimeReleasesAtExitOrphansNothing) {
  for (const bool by_runtime : {false, true}) {
    Trace t;
    t.Retain();
    t.CreateStream(0x10);
    t.Event(ProcessEvent::Exit);
    if (by_runtime) t.Event(ProcessEvent::RuntimeExit);
    t.ReleasePrimary().Fails(CUDA_ERROR_DEINITIALIZED);
    const Ledger ledger = t.Fold();
    EXPECT_EQ(ledger.objects[0].state, harness::State::Released);
    EXPECT_EQ(ledger.objects[1].state, by_runtime ? harness::State::Live : harness::State::Orphaned);
  }
}

TEST(Processes, OnlyTheFirstOnesExitCounts) {
  Trace t;
  t.Event(ProcessEvent::Start);
  t.Event(ProcessEvent::Fork, kChild, kProcess);
  t.Event(ProcessEvent::Exit, kChild);
  EXPECT_EQ(t.Fold().facts.processes.front().exit, 0U);
  t.Event(ProcessEvent::Exit);
  EXPECT_NE(t.Fold().facts.processes.front().exit, 0U);
}

}  // namespace
}  // namespace cuaudit::testing::process_test
