// SPDX-License-Identifier: MIT
// Runs without a fault, and the state at each of their calls.
#include "harness/sweep/run/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "harness/process/files.h"
#include "harness/recording/recording.h"
#include "harness/sweep/plan/call_state.h"
#include "harness/verdict/evidence/site_keys.h"
#include "suites/support/journal_builder.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::rehearsal_test {
namespace {

using driver::CallId;
using ::testing::HasSubstr;
using ::testing::Not;

Subject Sample() {
  Subject subject;
  subject.command = {"prog"};
  subject.deadline_ms = 10;
  return subject;
}

TEST(Rehearsal, NamesTheFirstCallThatDiffers) {
  const TemporaryDir dir;
  JournalBuilder first(dir.File("1"));
  JournalBuilder second(dir.File("2"));
  for (JournalBuilder* const one : {&first, &second}) one->Call(CallId::Init);
  first.Call(CallId::MemAlloc_v2);
  second.Call(CallId::StreamCreate);
  EXPECT_EQ(Words(FirstDifference(first.Read().evidence(), second.Read().evidence())), "call 2: cuMemAlloc, then cuStreamCreate");
}

TEST(PackedRun, SaysTheSameAndIsAsLargeAsItsContent) {
  JournalBuilder journal(1U << 16U);
  journal.StackIn(60000, "/lib/libone.so");
  journal.Call(CallId::Init);
  journal.Call(CallId::MemAlloc_v2).stack = 60000;
  journal.Call(CallId::StreamCreate).stack = 7;  // a stack that is not there
  const Observation before = journal.Read();
  const std::string bytes = PackJournal(before.journal);
  EXPECT_LT(bytes.size(), 16384U);
  faults::JournalView packed;
  ASSERT_EQ(packed.Open(bytes.data(), bytes.size()), nullptr);
  EXPECT_FALSE(packed.truncated());
  ASSERT_EQ(packed.records().size(), 3U);
  const faults::Record& call = packed.records()[1];
  EXPECT_EQ(call.call, before.journal.records()[1].call);
  EXPECT_EQ(call.end, before.journal.records()[1].end);
  ASSERT_EQ(packed.Stack(call.stack).size(), 1U);
  EXPECT_EQ(packed.ModulePath(faults::FrameModule(packed.Stack(call.stack)[0])), "/lib/libone.so");
  EXPECT_EQ(SiteKey(packed, SiteOf(call)), SiteKey(before.journal, SiteOf(before.journal.records()[1])));
  EXPECT_EQ(packed.records()[0].stack, 0U);
  EXPECT_EQ(packed.records()[2].stack, 0U);
  EXPECT_EQ(PackJournal(packed), bytes) << "packing twice changes nothing";
}

TEST(Rehearsal, NamesAMissingCallAndAnotherResult) {
  const TemporaryDir dir;
  JournalBuilder first(dir.File("1"));
  JournalBuilder second(dir.File("2"));
  JournalBuilder third(dir.File("3"));
  first.Call(CallId::Init);
  second.Call(CallId::Init);
  second.Call(CallId::MemAlloc_v2);
  third.Call(CallId::Init).result = CUDA_ERROR_NO_DEVICE;
  EXPECT_EQ(Words(FirstDifference(first.Read().evidence(), second.Read().evidence())), "call 2: only one run made it (1 calls, then 2)");
  EXPECT_EQ(Words(FirstDifference(first.Read().evidence(), third.Read().evidence())), "call 1: cuInit answered another result");
}

TEST(Rehearsal, AcceptsOnlyARunThatEndsAsExpected) {
  JournalBuilder journal;
  journal.Call(CallId::Init);
  EXPECT_TRUE(CheckFaultFree(Sample(), journal.Read({0, 0, false})).ok());
  EXPECT_THAT(CheckFaultFree(Sample(), journal.Read({4, 0, false})).message(), HasSubstr("exited with status 4"));
  EXPECT_THAT(CheckFaultFree(Sample(), journal.Read({0, 11, false})).message(), HasSubstr("died of signal 11"));
  EXPECT_THAT(CheckFaultFree(Sample(), journal.Read({0, 9, true})).message(), HasSubstr("did not finish within 10 ms"));
  Subject expecting = Sample();
  expecting.expected_exit = 4;
  EXPECT_TRUE(CheckFaultFree(expecting, journal.Read({4, 0, false})).ok());
}

TEST(Rehearsal, NamesTheCallThatFailedLast) {
  JournalBuilder journal;
  journal.Call(CallId::Init);
  journal.Call(CallId::StreamQuery).result = CUDA_ERROR_NOT_READY;
  EXPECT_THAT(CheckFaultFree(Sample(), journal.Read({4, 0, false})).message(), Not(HasSubstr("failed")));
  journal.Call(CallId::ImportExternalMemory).result = CUDA_ERROR_INVALID_VALUE;
  EXPECT_THAT(CheckFaultFree(Sample(), journal.Read({4, 0, false})).message(),
              HasSubstr("; the only driver call that failed was cuImportExternalMemory=INVALID_VALUE"));
  journal.Call(CallId::MemAlloc_v2).result = CUDA_ERROR_OUT_OF_MEMORY;
  journal.Call(CallId::CtxSynchronize);
  EXPECT_THAT(CheckFaultFree(Sample(), journal.Read({4, 0, false})).message(),
              HasSubstr("; the last of 2 driver calls that failed was cuMemAlloc=OUT_OF_MEMORY"));
}

TEST(Rehearsal, IsNotExercisedWithoutACall) {
  JournalBuilder journal;
  const Status never_entered = CheckExercised(Sample(), journal.Read());
  EXPECT_TRUE(never_entered.not_exercised());
  EXPECT_THAT(never_entered.message(), HasSubstr("never entered the program"));
  journal.Mark(faults::MarkKind::CycleBegin, 1);
  const Status never_called = CheckExercised(Sample(), journal.Read());
  EXPECT_TRUE(never_called.not_exercised());
  EXPECT_EQ(never_called.exit(), Exit::Environment);
  EXPECT_THAT(never_called.message(), ::testing::EndsWith(": the program never called the CUDA driver"));
  EXPECT_THAT(never_called.message(), Not(HasSubstr("not exercised"))) << "the outcome says so";
}

// NVIDIA's runtime ends the program, or goes on without the driver; both say nothing of the program.
TEST(Rehearsal, IsNotExercisedByARuntimeThatRefusesTheSimulatedDriver) {
  JournalBuilder journal;
  journal.Call(CallId::Init);
  constexpr std::string_view kObject = "/opt/app/libcudart.so.13";
  kObject.copy(journal.header().refused_runtime, sizeof(journal.header().refused_runtime) - 1);
  for (const int exit_status : {0, 4}) {
    const Status status = CheckFaultFree(Sample(), journal.Read({exit_status, 0, false}));
    EXPECT_TRUE(status.not_exercised());
    EXPECT_THAT(status.message(), HasSubstr(std::string(kObject)));
  }
}

// A sweep that goes on in its work directory reads the fault-free runs there one after another.
TEST(Rehearsal, BeginsWithoutTheRunsOfAnEarlierOne) {
  const TemporaryDir parent;
  const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
  ASSERT_TRUE(dir.ok());
  for (const char* const number : {"3", "4"}) {
    ASSERT_TRUE(WriteFile(dir->File(std::string("rehearsal-") + number + ".journal"), "", Exit::Failure).ok());
  }
  Subject subject = Sample();
  subject.launch.drop_in_dir = "a directory that no loader takes";
  int interrupted = 0;
  EXPECT_FALSE(Rehearse(subject, *dir, 2, &interrupted).ok());
  for (const char* const number : {"3", "4"}) {
    EXPECT_FALSE(ReadFile(dir->File(std::string("rehearsal-") + number + ".journal")).ok()) << number;
  }
}

TEST(Rehearsal, FailsWhenHostProbesThatWereAskedForNeverCameUp) {
  JournalBuilder journal;
  journal.Call(CallId::Init);
  Subject subject = Sample();
  EXPECT_TRUE(CheckExercised(subject, journal.Read()).ok());
  subject.launch.host_probes = HostProbes::Heap;
  const Status status = CheckExercised(subject, journal.Read());
  EXPECT_EQ(status.exit(), Exit::Environment);
  EXPECT_TRUE(status.not_exercised());
  EXPECT_THAT(status.message(), HasSubstr("host probes"));
  journal.header().flags.fetch_or(faults::kHostProbesActive);
  EXPECT_FALSE(CheckExercised(subject, journal.Read()).ok()) << "another process raised the flag";
  journal.Host(faults::HostCall::Looking, 0);
  EXPECT_TRUE(CheckExercised(subject, journal.Read()).ok());
}

TEST(Rehearsal, TellsAFullDiskFromAFullJournal) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.File("1"));
  journal.Call(CallId::Init);
  journal.header().flags.fetch_or(faults::kRecordsDropped | faults::kNoSpace);
  EXPECT_THAT(CheckExercised(Sample(), journal.Read()).message(), HasSubstr("no space left for the journal in " + dir.path()));
}

TEST(Rehearsal, FailsOnAJournalThatOverflowed) {
  JournalBuilder journal;
  journal.Call(CallId::Init);
  journal.header().flags.fetch_or(faults::kRecordsDropped);
  const Status status = CheckExercised(Sample(), journal.Read());
  EXPECT_EQ(status.exit(), Exit::Failure);
  EXPECT_THAT(status.message(), HasSubstr("--records"));
}

TEST(Rehearsal, RunsOfAProgramWithoutAnOrderAreKept) {
  JournalBuilder journal;
  journal.Call(CallId::Init);
  for (const bool threaded : {false, true}) {
    for (const bool drifting : {false, true}) {
      Rehearsal rehearsal;
      rehearsal.run = journal.Read();
      rehearsal.others.push_back(journal.Read());
      rehearsal.threaded = threaded;
      rehearsal.drifting = drifting;
      ForgetEqualRuns(&rehearsal);
      EXPECT_EQ(rehearsal.others.size(), threaded || drifting ? 1U : 0U) << threaded << drifting;
    }
  }
}

TEST(Rehearsal, ARunThatLeavesMoreIsKept) {
  const TemporaryDir dir;
  JournalBuilder first(dir.File("1"));
  JournalBuilder second(dir.File("2"));
  for (JournalBuilder* const one : {&first, &second}) one->Call(CallId::Init);
  second.Call(CallId::StreamCreate).argument[0] = 0x51;
  for (const bool swapped : {false, true}) {
    Rehearsal rehearsal;
    rehearsal.run = swapped ? second.Read() : first.Read();
    rehearsal.others.push_back(swapped ? first.Read() : second.Read());
    ForgetEqualRuns(&rehearsal);
    EXPECT_EQ(rehearsal.others.size(), 1U) << swapped;
  }
}

TEST(FileContent, EqualBytesAreEqualAndAnythingElseIsNot) {
  const TemporaryDir dir;
  for (const char* const name : {"one", "same"}) ASSERT_TRUE(WriteFile(dir.File(name), "some bytes", Exit::Failure).ok());
  ASSERT_TRUE(WriteFile(dir.File("other"), "some bites", Exit::Failure).ok());
  EXPECT_EQ(FileContent(dir.File("one")), FileContent(dir.File("same")));
  EXPECT_NE(FileContent(dir.File("one")), FileContent(dir.File("other")));
  EXPECT_EQ(FileContent(dir.File("none")), 0U);
  EXPECT_EQ(FileContent(dir.path()), 0U) << "a directory";
}

// The loopback device has no speed, and the kernel says so when the file is read.
TEST(FileContent, OfAFileThatCannotBeReadIsItsSize) {
  constexpr const char* kSpeed = "/sys/class/net/lo/speed";
  struct stat facts = {};
  if (stat(kSpeed, &facts) != 0 || facts.st_size == 0 || ReadFile(kSpeed).ok()) GTEST_SKIP() << "no such file: " << kSpeed;
  EXPECT_NE(FileContent(kSpeed), 0U);
}

using ::testing::SizeIs;

class CallStateTest : public ::testing::Test {
 protected:
  // A call with a call stack: without one its state is unknown.
  faults::Record& Call(CallId call, std::uint64_t handle = 0) {
    faults::Record& record = journal_.Call(call);
    record.stack = 1;
    record.argument[0] = handle;
    return record;
  }
  std::vector<std::uint64_t> States(StatesAre are = StatesAre::Exact) {
    const Observation seen = journal_.Read();
    std::vector<std::uint64_t> states;
    for (const CallState& call : StatesOf(seen.evidence(), {}, are).calls) states.push_back(call.state);
    return states;
  }

  TemporaryDir dir_;
  JournalBuilder journal_{dir_.File("journal"), 20000};
};

TEST_F(CallStateTest, EqualPlacesWithEqualObjectsAreOneState) {
  for (int turn = 0; turn < 2; ++turn) {
    Call(CallId::StreamCreate, 0x10);
    Call(CallId::StreamDestroy_v2, 0x10);
  }
  const std::vector<std::uint64_t> states = States();
  EXPECT_EQ(states[0], states[2]);
  EXPECT_EQ(states[1], states[3]);
  EXPECT_NE(states[0], states[1]);
}

TEST_F(CallStateTest, CountsAreToldApart) {
  for (std::uint64_t i = 1; i <= 100; ++i) Call(CallId::MemAlloc_v2, i * 0x1000);
  const std::vector<std::uint64_t> states = States();
  EXPECT_THAT(std::set<std::uint64_t>(states.begin(), states.end()), SizeIs(100));
}

TEST_F(CallStateTest, CyclesAreToldApartUnlessStatesAreCoarse) {
  Call(CallId::CtxSynchronize).cycle = 1;
  Call(CallId::CtxSynchronize).cycle = 2;
  EXPECT_NE(States()[0], States()[1]);
  EXPECT_EQ(States(StatesAre::Coarse)[0], States(StatesAre::Coarse)[1]);
}

TEST_F(CallStateTest, CoarseCountsAreToldApartUpToTwo) {
  for (std::uint64_t i = 1; i <= 8200; ++i) Call(CallId::MemAlloc_v2, i * 0x1000);
  const std::vector<std::uint64_t> states = States(StatesAre::Coarse);
  EXPECT_THAT(std::set<std::uint64_t>(states.begin(), states.end()), SizeIs(4)) << "none, one, two, many";
  EXPECT_EQ(states[3], states[8199]);
}

TEST_F(CallStateTest, TwoCountsThatMoveApartDoNotCancelOut) {
  // k streams, then for each one fewer an event more: every sum of the counts is the same, no state is.
  std::set<std::uint64_t> states;
  for (std::uint64_t streams = 0; streams <= 2; ++streams) {
    JournalBuilder journal(dir_.File("of-" + std::to_string(streams)));
    for (std::uint64_t i = 0; i < 2; ++i) {
      faults::Record& made = journal.Call(i < streams ? CallId::StreamCreate : CallId::EventCreate);
      made.stack = 1;
      made.argument[0] = 0x10 + i;
    }
    journal.Call(CallId::CtxSynchronize).stack = 1;
    const Observation seen = journal.Read();
    states.insert(StatesOf(seen.evidence()).calls.back().state);
  }
  EXPECT_THAT(states, SizeIs(3));
}

TEST_F(CallStateTest, PhasesAreStatesOfTheirOwn) {
  Call(CallId::CtxSynchronize);
  Call(CallId::CtxSynchronize).phase = faults::Phase::Teardown;
  EXPECT_NE(States()[0], States()[1]);
}

TEST_F(CallStateTest, IsUnknownWithoutACallStackAndWithSeveralThreads) {
  journal_.Call(CallId::CtxSynchronize);
  EXPECT_EQ(States()[0], 0U);
  Call(CallId::CtxSynchronize);
  EXPECT_NE(States()[1], 0U);
  Call(CallId::CtxSynchronize).tid = 7;
  for (const std::uint64_t state : States()) EXPECT_EQ(state, 0U);
}

TEST_F(CallStateTest, WhatWasLostForGoodDoesNotCount) {
  Call(CallId::CtxSynchronize);
  const std::uint64_t before = States()[0];
  JournalBuilder rehearsal(dir_.File("rehearsal"));
  rehearsal.Call(CallId::Init);
  JournalBuilder trial(dir_.File("trial"));
  faults::Record& lost = trial.Call(CallId::StreamCreate);
  lost.argument[0] = 0x10;
  lost.stack = 1;
  trial.Call(CallId::CtxSynchronize).stack = 1;
  const Observation first = rehearsal.Read();
  const Observation then = trial.Read();
  const std::vector<bool> without = LostBeyond(Rehearsed(first.evidence()), then.evidence());
  EXPECT_EQ(StatesOf(then.evidence(), without).calls[1].state, before);
  EXPECT_NE(StatesOf(then.evidence()).calls[1].state, before);
}

TEST_F(CallStateTest, WhatTheRehearsalAlsoLeavesIsNotLost) {
  JournalBuilder rehearsal(dir_.File("rehearsal"));
  JournalBuilder trial(dir_.File("trial"));
  for (JournalBuilder* const one : {&rehearsal, &trial}) {
    faults::Record& left = one->Call(CallId::StreamCreate);
    left.argument[0] = 0x10;
    left.stack = 1;
  }
  const Observation first = rehearsal.Read();
  const Observation then = trial.Read();
  EXPECT_THAT(LostBeyond(Rehearsed(first.evidence()), then.evidence()), ::testing::ElementsAre(false));
}

}  // namespace
}  // namespace cuaudit::harness::rehearsal_test
