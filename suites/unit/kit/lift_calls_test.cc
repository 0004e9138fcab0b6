// SPDX-License-Identifier: MIT
#include "harness/kit/lift_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "faults/driver/shape.h"
#include "faults/journal/recording.h"
#include "harness/kit/issue_text.h"
#include "harness/kit/reducer_text.h"
#include "suites/support/temporary_dir.h"
#include "suites/unit/sweep/journal_builder.h"

namespace cuaudit::harness::lift_calls_test {
namespace {

using driver::BaseId;
using driver::CallId;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kSecret = 0x5ec2e75e;
constexpr std::uint32_t kParent = 1;
constexpr std::uint32_t kChild = 2;

CallList Lift(const Observation& run, const std::vector<Wrong>& wanted) {
  SiteTexts places;
  Result<CallList> list = LiftCalls({&run, 1}, {}, wanted, &places);
  EXPECT_TRUE(list.ok());
  return list.ok() ? std::move(*list) : CallList();
}

std::vector<CallId> CallsOf(const CallList& list) {
  std::vector<CallId> calls;
  for (const Step& step : list.stages.front().steps) calls.push_back(step.call);
  return calls;
}

TEST(LiftCalls, NoDataOfTheProgramIsInAKit) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.path() + "/journal");
  std::size_t secrets = 0;
  for (std::size_t i = 0; i < driver::kCallCount; ++i) {
    const auto call = static_cast<CallId>(i);
    for (std::size_t at = 0; at < std::min<std::size_t>(driver::ShapeOf(call).count, faults::kRecordArguments); ++at) {
      if (!faults::IsData(driver::BaseOf(call), at)) continue;
      journal.Call(call).argument[at] = kSecret;
      ++secrets;
    }
  }
  ASSERT_GE(secrets, 18U);
  Reduction reduction;
  reduction.list = Lift(journal.Read(), {});
  ASSERT_EQ(CountCalls(reduction.list), secrets);
  for (const Step& step : reduction.list.stages.front().steps) {
    for (const CallValue& value : step.values) EXPECT_NE(value.number, kSecret) << driver::Name(step.call);
  }
  const std::string page = IssueText({}, reduction, {}, {});
  for (const std::string& text : {page, ReducerText(reduction.list, {}, false)}) EXPECT_THAT(text, Not(HasSubstr(std::to_string(kSecret))));
  EXPECT_THAT(page, HasSubstr("are 0 in the reducer: they are its data"));
  EXPECT_THAT(page, HasSubstr("A wait of the reducer ends when the memory has at least 0"));
}

TEST(LiftCalls, AWaitCanEnd) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.path() + "/journal");
  faults::Record& wait = journal.Call(CallId::StreamWaitValue32_v2);
  wait.argument[2] = kSecret;
  wait.argument[3] = CU_STREAM_WAIT_VALUE_AND | CU_STREAM_WAIT_VALUE_FLUSH;
  const CallList list = Lift(journal.Read(), {});
  EXPECT_EQ(list.stages.front().steps.at(0).values.at(3).number, static_cast<std::uint64_t>(CU_STREAM_WAIT_VALUE_FLUSH));
}

// The parent makes more calls, the child leaves a stream.
TEST(LiftCalls, TheProcessIsTheOneThatShowsTheDefect) {
  const TemporaryDir dir;
  JournalBuilder journal(dir.path() + "/journal");
  for (int i = 0; i < 3; ++i) journal.Call(CallId::Init).pid = kParent;
  faults::Record& made = journal.Call(CallId::StreamCreate);
  made.pid = kChild;
  made.argument[0] = 0x51;
  const Observation run = journal.Read();
  EXPECT_EQ(CallingProcesses(run), 2U);
  EXPECT_EQ(CallsOf(Lift(run, {{Rule::LeftAtExit, driver::Kind::Stream, 1}})), std::vector<CallId>{CallId::StreamCreate});
  EXPECT_EQ(CallsOf(Lift(run, {{Rule::LeftAtExit, driver::Kind::Event, 1}})), std::vector<CallId>(3, CallId::Init)) << "nobody shows it";
}

// The parent makes more calls, and a call of the child fails: before the failure it is the call of the same number.
TEST(LiftCalls, TheProcessIsTheOneWhoseCallFails) {
  const TemporaryDir dir;
  std::vector<Observation> runs;
  for (const bool fails : {false, true}) {
    JournalBuilder journal(dir.path() + (fails ? "/second" : "/first"));
    for (int i = 0; i < 3; ++i) journal.Call(CallId::Init).pid = kParent;
    faults::Record& call = journal.Call(CallId::EventCreate);
    call.pid = fails ? 7 : kChild;
    call.argument[0] = 0xe1;
    if (fails) {
      call.fault = 1;
      call.result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    runs.push_back(journal.Read());
  }
  faults::Fault fault;
  fault.base = BaseId::EventCreate;
  fault.code = CUDA_ERROR_OUT_OF_MEMORY;
  SiteTexts places;
  const Result<CallList> list = LiftCalls(runs, {&fault, 1}, {}, &places);
  ASSERT_TRUE(list.ok()) << list.status().message();
  EXPECT_EQ(CountCalls(*list), 1U);
  EXPECT_EQ(list->stages.front().failing->step.call, CallId::EventCreate);
}

}  // namespace
}  // namespace cuaudit::harness::lift_calls_test
