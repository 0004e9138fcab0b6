// SPDX-License-Identifier: MIT
// Programs that change settings and are right. The wrong twins are in suites/planted/settings_test.cc.
#include "suites/support/cases/settings.h"

#include "suites/support/cases/families.h"
#include "suites/support/cases/own_context.h"

namespace cuaudit::testing::settings_test {
namespace {

using harness::Rule;
using ::testing::IsEmpty;

template <typename Program>
void ExpectSilent(const Program& program, bool right, std::string_view label) {
  const CaseRow row(label);
  EXPECT_THAT(JudgeProgram(program, right).findings, IsEmpty());
}

CUAUDIT_CASE(SettingNotRestored, TheFunctionPutsItBack) {
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn>, true, "limit");
  ExpectSilent(ChangesASetting<Setting::NewCacheConfig, Caller::GoesOn>, true, "configuration that nobody asked for");
  ExpectSilent(ChangesASetting<Setting::CaptureMode, Caller::GoesOn>, true, "capture mode");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::GoesOn>, true, "threshold");
  ExpectSilent(ChangesASetting<Setting::PoolOfDevice, Caller::GoesOn>, true, "pool of a device");
  ExpectSilent(ChangesASetting<Setting::DefaultPool, Caller::GoesOn>, true, "default pool of a device");
  ExpectSilent(ChangesASetting<Setting::PrimaryFlags, Caller::GoesOn>, true, "flags of the primary context");
  ExpectSilent(ChangesASetting<Setting::FunctionAttribute, Caller::GoesOn>, true, "attribute of a function");
  ExpectSilent(ChangesASetting<Setting::NewFunctionCache, Caller::GoesOn>, true, "cache of a function");
  ExpectSilent(ChangesASetting<Setting::KernelAttribute, Caller::GoesOn>, true, "attribute of a kernel");
  ExpectSilent(ChangesASetting<Setting::NewWindow, Caller::GoesOn>, true, "window of a stream");
  ExpectSilent(ChangesASetting<Setting::StreamPriority, Caller::GoesOn>, true, "priority of a stream");
  ExpectSilent(ChangesASetting<Setting::NewReadMostly, Caller::GoesOn>, true, "advice");
  ExpectSilent(ChangesASetting<Setting::NewNode, Caller::GoesOn>, true, "disabled node");
  ExpectSilent(ChangesASetting<Setting::Node, Caller::GoesOn>, true, "disabled node that was asked for");
  ExpectSilent(ChangesASetting<Setting::PreferredLocation, Caller::GoesOn>, true, "another preferred location");
  ExpectSilent(UnloadsAfterwards<Setting::FunctionAttribute, false>, true, "another module is unloaded");
  ExpectSilent(ChangesASettingInACycle<Setting::Limit, false>, true, "cycle");
  ExpectSilent(CallsItInALoop<Setting::Limit>, true, "function in a loop");
  ExpectSilent(LeavesItInAThread<false>, true, "function of a thread");
  ExpectSilent(PutsFlagsBackOtherwise, false, "by another call");
  ExpectSilent(TrimsAPool<false>, true, "threshold that another function had chosen");
  ExpectSilent(ChangesASettingTwice<true>, true, "a function within another");
}
CUAUDIT_CASE(SettingNotRestored, NobodyMeetsWithIt) {
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::OnlyEnds>, false, "the context ends");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::OnlyEnds>, false, "the pool ends");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::ChoosesItself>, false, "caller chooses itself");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::ChoosesItself>, false, "caller chooses a threshold itself");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::PutsBackLater>, false, "caller puts it back later");
  ExpectSilent(ChangesASetting<Setting::NewFunctionCache, Caller::OnlyEnds>, false, "the context of the function ends");
  ExpectSilent(ChangesASetting<Setting::KernelAttribute, Caller::OnlyEnds>, false, "the library of the kernel ends");
  ExpectSilent(UnloadsAfterwards<Setting::FunctionAttribute, true>, false, "the module of the function ends");
  ExpectSilent(UnloadsAfterwards<Setting::KernelAttribute, true>, false, "the library of the kernel is unloaded");
  ExpectSilent(ChangesASetting<Setting::NewWindow, Caller::OnlyEnds>, false, "the context of the stream ends");
  ExpectSilent(ChangesASetting<Setting::NewReadMostly, Caller::OnlyEnds>, false, "the context of the memory ends");
  ExpectSilent(ChangesASetting<Setting::NewNode, Caller::OnlyEnds>, false, "the executable of the node ends");
  ExpectSilent(ChangesASettingInACycle<Setting::Limit, true>, false, "the context ends in its cycle");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::WaitsAndEnds>, false, "caller waits, and the context ends");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::WaitsAndEnds>, false, "caller waits, and the pool ends");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::UsesAnotherPool>, false, "threshold of another pool");
  ExpectSilent(ChangesASetting<Setting::PoolOfDevice, Caller::UsesAnotherPool>, false, "another pool than the one of the device");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::Exits>, false, "the process ends");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::ChoosesTheSame>, false, "caller chooses the same value itself");
  ExpectSilent(LeavesItInAThread<true>, false, "a thread that still runs");
  ExpectSilent(SetsItInEachTurn, false, "a loop within the function");
}
CUAUDIT_CASE(SettingNotRestored, NobodyWasToPutItBack) {
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::NeverPutsBack>, false, "no run puts it back");
  ExpectSilent(ChangesASetting<Setting::NewThreshold, Caller::GoesOn, Function::NeverPutsBack>, false, "threshold for good");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::SetsTwice>, false, "two values for good");
  ExpectSilent(ChangesASetting<Setting::NewFunctionCache, Caller::GoesOn, Function::NeverPutsBack>, false, "cache for good");
  ExpectSilent(ChangesASetting<Setting::KernelAttribute, Caller::GoesOn, Function::NeverPutsBack>, false, "attribute for good");
  ExpectSilent(ChangesASetting<Setting::StreamPriority, Caller::GoesOn, Function::NeverPutsBack>, false, "priority for good");
  ExpectSilent(ChangesASetting<Setting::NewReadMostly, Caller::GoesOn, Function::NeverPutsBack>, false, "advice for good");
  ExpectSilent(ChangesASetting<Setting::NewNode, Caller::GoesOn, Function::NeverPutsBack>, false, "disabled for good");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::ChoosesIfItFails>, false, "another value when it fails");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::TriesToChoose>, false, "the same, refused");
  ExpectSilent(EachChoosesItsOwn<Setting::Limit, true>, false, "each function chooses");
  ExpectSilent(EachChoosesItsOwn<Setting::Limit, false>, false, "each turn chooses");
  ExpectSilent(EachChoosesItsOwn<Setting::FunctionAttribute, true>, false, "each launch chooses");
  ExpectSilent(TrimsAPool<true>, false, "threshold for good that is left for a while");
}
CUAUDIT_CASE(SettingNotRestored, TheProgramCouldNotKnow) {
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::IsRefusedThat>, false, "the call that puts it back fails");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::GoesOn, Function::IsRefusedThat>, false, "the same behind a pointer");
  ExpectSilent(ChangesASetting<Setting::NewWindow, Caller::GoesOn, Function::IsRefusedThat>, false, "the same of a stream");
  ExpectSilent(ChangesASetting<Setting::KernelAttribute, Caller::GoesOn, Function::IsRefusedThat>, false, "the same of a kernel");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::TriesLater>, false, "the caller tries to put it back later");
  ExpectSilent(ChangesASetting<Setting::Threshold, Caller::TriesLater>, false, "the caller tries the same behind a pointer");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::IsDenied>, false, "told that nothing changed");
  ExpectSilent(ChangesASetting<Setting::CaptureMode, Caller::GoesOn, Function::IsDenied>, false, "told that no mode changed");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::IsNotTold>, false, "not told the former value");
  ExpectSilent(ChangesASetting<Setting::Limit, Caller::GoesOn, Function::IsRefusedIt>, false, "the change fails");
}
// The loss of the context says it.
CUAUDIT_CASE(SettingNotRestored, WhatHasItIsLost) {
  const Aside aside;
  const harness::Judgement judgement = JudgeProgram(ChangesASetting<Setting::Limit, Caller::EndsItUsually>, false);
  ASSERT_EQ(judgement.findings.size(), 1U);
  EXPECT_EQ(judgement.findings[0].rule, Rule::Leak);
}

template <typename Program>
void ExpectClean() {
  SweepOptions options = {.hows = {"refuse", "after", "persist", "burst:2"}};
  const Audit swept = Noted(Sweep(Lifecycle::Of<Program>("right").WithCurrentContext(), options));
  EXPECT_EQ(swept.outcome, AuditOutcome::Clean) << swept.Text();
  EXPECT_GT(swept.fired, 0U);
}

CUAUDIT_CASE(SettingNotRestored, ALifecycleThatRaisesALimit) { ExpectClean<RaisesALimit<false>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatRelaxesTheCaptureMode) { ExpectClean<RelaxesTheCaptureMode<false>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatKeepsThePoolFull) { ExpectClean<KeepsThePoolFull<false>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatKeepsAWindow) { ExpectClean<KeepsAWindow<false>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatConfiguresItsContext) { ExpectClean<ConfiguresItsContext>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatRaisesTheLimitOfItsOwn) { ExpectClean<RaisesTheLimitOfItsOwn>(); }

}  // namespace
}  // namespace cuaudit::testing::settings_test
