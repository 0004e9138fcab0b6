// SPDX-License-Identifier: MIT
// Which defect of a report is wanted, what a list of calls shows of it, and the page that says so.
#include "harness/kit/defect_shown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "harness/kit/issue_text.h"
#include "harness/kit/reduce_calls.h"
#include "harness/kit/reducer_text.h"
#include "suites/unit/kit/kit_lists.h"

namespace cuaudit::harness::defect_shown_test {
namespace {

using driver::Kind;
using kit_lists::Call;
using kit_lists::CallId;
using kit_lists::kAbandonedIsLeak;
using kit_lists::LosesAStream;
using kit_lists::Number;
using kit_lists::Of;
using kit_lists::To;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The program leaves its context on the stack until it destroys it. After the failed push, the same instruction pushes again, and another
// one than the first pop takes that entry off: in order. Only without the second push does that pop take what is not there.
TEST(DefectJudge, CallsOfOneEntryPointComeFromAsManyInstructionsAsInTheProgram) {
  const Step push = Call(CallId::CtxPushCurrent_v2, {Of(0)});
  const Step pop = Call(CallId::CtxPopCurrent_v2, {To(2)});
  const Step destroy = Call(CallId::CtxDestroy_v2, {Of(0)});
  Step again = push;
  again.stack = Call(CallId::Init, {}).stack;
  faults::Fault fault = {.base = driver::BaseId::CtxPushCurrent, .code = CUDA_ERROR_INVALID_CONTEXT};
  Stage first;
  first.steps = {Call(CallId::Init, {Number(0)}), Call(CallId::CtxCreate_v2, {To(0), Number(4), Number(0)}),
                 Call(CallId::CtxPopCurrent_v2, {To(1)})};
  first.failing = FailingStep{push, fault};
  first.rest = {destroy};
  Stage second;
  second.steps = {again, pop, destroy};
  CallList list = {.variables = {{"CUcontext"}, {"CUcontext"}, {"CUcontext"}}, .stages = {first, second}};
  DefectJudge judge(kAbandonedIsLeak);
  const Result<DefectShown> in_order = judge.Look(list);
  ASSERT_TRUE(in_order.ok()) << in_order.status().message();
  EXPECT_THAT(in_order->wrong, ElementsAre());
  list.stages[1].steps = {pop, destroy};
  const Result<DefectShown> too_many = judge.Look(list);
  ASSERT_TRUE(too_many.ok()) << too_many.status().message();
  EXPECT_THAT(too_many->wrong, ElementsAre(Wrong{Rule::Deficit, Kind::ContextStackEntry, 1}));
}

// Both keep the stream that one instruction makes.
TEST(DefectJudge, ACallHasOnePlaceWhetherOrNotACallFailedBefore) {
  CallList list = LosesAStream();
  list.variables.push_back({"CUstream"});
  const Step keeps = Call(CallId::StreamCreate, {To(static_cast<int>(list.variables.size()) - 1), Number(0)});
  list.stages[0].rest = {Call(CallId::StreamDestroy_v2, {Of(1)}), keeps};
  list.stages[1].steps = {Call(CallId::StreamDestroy_v2, {Of(1)}), keeps};
  DefectJudge judge(kAbandonedIsLeak);
  for (const bool one_place : {true, false}) {
    judge.CallFrom(one_place);
    const Result<DefectShown> shown = judge.Look(list);
    ASSERT_TRUE(shown.ok()) << shown.status().message();
    const bool wrong = std::any_of(shown->wrong.begin(), shown->wrong.end(), [](const Wrong& one) { return one.kind == Kind::Stream; });
    EXPECT_EQ(wrong, !one_place);
  }
}

TEST(Together, AddsWhatHasOneRuleAndKind) {
  EXPECT_THAT(Together({{Rule::Leak, Kind::Stream, 1}, {Rule::Leak, Kind::Event, 1}, {Rule::Leak, Kind::Stream, 2}}),
              ElementsAre(Wrong{Rule::Leak, Kind::Stream, 3}, Wrong{Rule::Leak, Kind::Event, 1}));
}

report::Finding Lost(Rule rule, const char* kind, std::uint64_t count) {
  report::Finding finding = {.rule = rule, .kind = kind, .count = count, .fault = report::Fault{}};
  finding.fault->text = "cuEventCreate#2=OUT_OF_MEMORY,refuse";
  finding.fault->call = "cuEventCreate";
  return finding;
}

report::Audit AuditOf(std::vector<report::Finding> findings) {
  report::Run run;
  run.tool_version = "0.1.0";
  run.command = {"/home/somebody/secret/player", "--password=hunter2"};
  report::Defect defect = {.fingerprint = "v2-1"};
  for (std::size_t i = 0; i < findings.size(); ++i) defect.members.push_back({{i}, findings[i].count, 0});
  run.findings = std::move(findings);
  run.defects = {defect};
  report::Audit audit;
  audit.cases.emplace_back();
  audit.cases.front().runs = {run};
  return audit;
}

TEST(FindDefect, TakesWhatDriverCallsCanShow) {
  const auto found = FindDefect(AuditOf({Lost(Rule::Leak, "stream", 2), Lost(Rule::Leak, "host_heap", 3)}), "v2-1", "r.json");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_THAT(found->faults, ElementsAre("cuEventCreate#2=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT(found->wanted, ElementsAre(Wrong{Rule::Leak, driver::Kind::Stream, 2}));
  EXPECT_THAT(found->left_out, ElementsAre(HasSubstr("host_heap: a resource of the host")));
}

TEST(FindDefect, SaysWhyThereIsNoKit) {
  const auto unknown = FindDefect(AuditOf({Lost(Rule::Leak, "stream", 1)}), "v2-2", "r.json");
  EXPECT_EQ(unknown.status().exit(), Exit::Usage);
  EXPECT_EQ(unknown.status().message(), "r.json: expected a defect with the fingerprint 'v2-2'");
  const auto host = FindDefect(AuditOf({Lost(Rule::Leak, "host_heap", 3)}), "v2-1", "r.json");
  EXPECT_EQ(host.status().exit(), Exit::Environment);
  EXPECT_THAT(host.status().message(), HasSubstr("v2-1: no kit: leak 3 host_heap: a resource of the host"));
  const auto crash = FindDefect(AuditOf({Lost(Rule::Crash, "", 1)}), "v2-1", "r.json");
  EXPECT_THAT(crash.status().message(), HasSubstr("no kit: crash 1: the rule is about what the program says or how it ends"));
  const auto memory = FindDefect(AuditOf({Lost(Rule::DestroyedUnderUser, "host_registration", 1)}), "v2-1", "r.json");
  EXPECT_THAT(memory.status().message(), HasSubstr("no kit: destroyed_under_user 1 host_registration: the memory under the registration"));
  report::Finding refused = Lost(Rule::Leak, "stream", 1);
  refused.fault->text = "malloc#3=host_oom";
  EXPECT_THAT(FindDefect(AuditOf({refused}), "v2-1", "r.json").status().message(), HasSubstr("what fails is malloc#3=host_oom"));
}

TEST(FindDefect, TheCountsAreThoseOfOneTrial) {
  auto found = FindDefect(AuditOf({Lost(Rule::Leak, "stream", 9)}), "v2-1", "r.json");
  ASSERT_TRUE(found.ok());
  report::Run replayed = {.findings = {Lost(Rule::Leak, "stream", 3)}};
  EXPECT_TRUE(TakeCounts(replayed, &*found).ok());
  EXPECT_THAT(found->wanted, ElementsAre(Wrong{Rule::Leak, driver::Kind::Stream, 3}));
  replayed.findings = {Lost(Rule::Leak, "event", 3)};
  EXPECT_THAT(TakeCounts(replayed, &*found).message(),
              HasSubstr("does not show the defect any more: expected leak 3 stream, found leak 3 event"));
}

TEST(FindDefect, OtherDefectsOfTheTrialAreNotCounted) {
  report::Finding one = Lost(Rule::Leak, "stream", 9);
  one.acquired = {"cuStreamCreate", {{"libnorth.so", "", "", 0, 0x1234}}};
  report::Finding other = one;
  other.acquired.stack.front().offset = 0x4321;
  auto found = FindDefect(AuditOf({one}), "v2-1", "r.json");
  ASSERT_TRUE(found.ok());
  report::Run replayed;
  one.count = 3;
  other.count = 4;
  replayed.findings = {other, one};
  EXPECT_TRUE(TakeCounts(replayed, &*found).ok());
  EXPECT_THAT(found->wanted, ElementsAre(Wrong{Rule::Leak, driver::Kind::Stream, 3}));
  EXPECT_THAT(IssueText(*found, {}, {}, {}), HasSubstr("\nlibnorth.so+0x1234\n"));
}

// People send these files: no directory, no argument of the program, and no markup of its names.
TEST(IssueText, TellsNothingOfThisMachineAndIsOneDocument) {
  report::Finding hostile = Lost(Rule::Leak, "stream", 1);
  hostile.acquired.call = "cuStreamCreate";
  hostile.acquired.stack = {{.module = "/home/somebody/secret/player",
                             .function = "open<script>alert(1)</script>\n# Title\n```\n" + std::string(10000, 'x'),
                             .file = "/home/somebody/secret/open.c",
                             .line = 7,
                             .offset = 0xdeadbeef}};
  auto found = FindDefect(AuditOf({hostile}), "v2-1", "r.json");
  ASSERT_TRUE(found.ok());
  Reduction reduction;
  reduction.list.stages.resize(1);
  const KitCommand command{"replay", {"--fault", "it's"}, {}};
  const std::string page = IssueText(*found, reduction, command, {true, ""});
  for (const std::string& text : {page, ReducerText(reduction.list, HeadingOf(*found, reduction.list), false), RunScript(command)}) {
    EXPECT_THAT(text, Not(HasSubstr("secret")));
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
    EXPECT_THAT(text, Not(HasSubstr("deadbeef")));
    EXPECT_THAT(text, Not(HasSubstr("\n# Title")));
  }
  EXPECT_THAT(page, HasSubstr("open<script>alert(1)</script>?# Title?```?xxx"));
  EXPECT_LT(page.size(), 4000U);
  EXPECT_THAT(page, HasSubstr("shows the same rules, kinds, failing calls and counts"));
  EXPECT_THAT(RunScript(command), HasSubstr("replay --fault 'it'\\''s' -- ./reducer\n"));
  EXPECT_THAT(IssueText(*found, reduction, command, {false, "cuda.h is missing"}), HasSubstr("**Not confirmed.** cuda.h is missing"));
}

TEST(IssueText, NamesTheFailingCallOfTheProgramAndThatOfTheReducer) {
  const auto found = FindDefect(AuditOf({Lost(Rule::Leak, "stream", 1)}), "v2-1", "r.json");
  ASSERT_TRUE(found.ok());
  Reduction reduction;
  reduction.list = kit_lists::LosesAStream();
  EXPECT_THAT(IssueText(*found, reduction, {}, {}),
              HasSubstr("- fails: <code>cuEventCreate#2=OUT_OF_MEMORY,refuse</code> of the program, which is "
                        "<code>cuEventCreate#1=OUT_OF_MEMORY,refuse</code> of the reducer\n"));
}

TEST(IssueText, SaysWhatKeepsTheKitFromBeingConfirmed) {
  const auto found = FindDefect(AuditOf({Lost(Rule::Leak, "stream", 1)}), "v2-1", "r.json");
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(IssueText(*found, {}, {}, {false, "cuda.h is missing"}), HasSubstr("\n**Not confirmed.** cuda.h is missing\n"));
  EXPECT_THAT(IssueText(*found, {}, {}, {true, ""}), Not(HasSubstr("Not confirmed")));
}

}  // namespace
}  // namespace cuaudit::harness::defect_shown_test
