// SPDX-License-Identifier: MIT
// Settings that a failing path changes and does not put back. The repaired twins are in suites/positive/settings_test.cc.
#include "suites/support/cases/settings.h"

#include <string>

#include "suites/support/cases/families.h"
#include "suites/support/cases/own_context.h"

namespace cuaudit::testing::settings_test {
namespace {

using harness::Judgement;
using harness::Rule;

template <typename Program>
void ExpectLeft(const Program& program, std::uint32_t change, std::uint32_t met, std::string_view label) {
  const CaseRow row(label);
  ExpectNotPutBack(program, Rule::SettingNotRestored, change, met);
}

CUAUDIT_CASE(SettingNotRestored, TheCallerGoesOn) {
  ExpectLeft(ChangesASetting<Setting::Limit, Caller::GoesOn>, InHelper(1, 2), 103, "limit");
  ExpectLeft(ChangesASetting<Setting::NewCacheConfig, Caller::GoesOn>, InHelper(1, 2), 103, "configuration that nobody asked for");
  ExpectLeft(ChangesASetting<Setting::Flags, Caller::GoesOn>, InHelper(1, 2), 103, "flags");
  ExpectLeft(ChangesASetting<Setting::CaptureMode, Caller::GoesOn>, InHelper(1, 2), 103, "capture mode");
  ExpectLeft(ChangesASetting<Setting::Threshold, Caller::GoesOn>, InHelper(1, 2), 103, "threshold");
  ExpectLeft(ChangesASetting<Setting::NewThreshold, Caller::GoesOn>, InHelper(1, 2), 103, "threshold that nobody asked for");
  ExpectLeft(ChangesASetting<Setting::PoolOfDevice, Caller::GoesOn>, InHelper(1, 2), 103, "pool of a device");
  ExpectLeft(ChangesASetting<Setting::DefaultPool, Caller::GoesOn>, InHelper(1, 2), 103, "default pool of a device");
  ExpectLeft(ChangesASetting<Setting::FunctionAttribute, Caller::GoesOn>, InHelper(1, 2), 103, "attribute of a function");
  ExpectLeft(ChangesASetting<Setting::NewFunctionCache, Caller::GoesOn>, InHelper(1, 2), 103, "cache of a function");
  ExpectLeft(ChangesASetting<Setting::KernelAttribute, Caller::GoesOn>, InHelper(1, 2), 103, "attribute of a kernel");
  ExpectLeft(ChangesASetting<Setting::NewWindow, Caller::GoesOn>, InHelper(1, 2), 103, "window of a stream");
  ExpectLeft(ChangesASetting<Setting::StreamPriority, Caller::GoesOn>, InHelper(1, 2), 103, "priority of a stream");
  ExpectLeft(ChangesASetting<Setting::NewReadMostly, Caller::GoesOn>, InHelper(1, 2), 103, "advice");
  ExpectLeft(ChangesASetting<Setting::NewNode, Caller::GoesOn>, InHelper(1, 2), 103, "disabled node");
  ExpectLeft(ChangesASetting<Setting::Node, Caller::GoesOn>, InHelper(1, 2), 103, "disabled node that was asked for");
  ExpectLeft(ChangesASetting<Setting::PreferredLocation, Caller::GoesOn>, InHelper(1, 2), 103, "another preferred location");
}
CUAUDIT_CASE(SettingNotRestored, AnotherModuleIsUnloaded) {
  ExpectLeft(UnloadsAfterwards<Setting::FunctionAttribute, false>, InHelper(1, 2), 103, "function of a module");
  ExpectLeft(UnloadsAfterwards<Setting::KernelAttribute, false>, InHelper(1, 2), 103, "kernel of a library");
}
CUAUDIT_CASE(SettingNotRestored, AnotherFunctionPutsBackWhatItFound) {
  ExpectLeft(ChangesASetting<Setting::Limit, Caller::CallsAnother>, InHelper(1, 2), 103, "limit");
  ExpectLeft(ChangesASetting<Setting::KernelAttribute, Caller::CallsAnother>, InHelper(1, 2), 103, "attribute of a kernel");
  ExpectLeft(ChangesASetting<Setting::StreamPriority, Caller::CallsAnother>, InHelper(1, 2), 103, "priority of a stream");
}
CUAUDIT_CASE(SettingNotRestored, TheCycleEnds) {
  ExpectLeft(ChangesASettingInACycle<Setting::Limit, false>, 103, 0, "limit");
  ExpectLeft(ChangesASettingInACycle<Setting::PrimaryFlags, false>, 103, 0, "flags of the primary context");
  ExpectLeft(ChangesASettingInACycle<Setting::NewWindow, false>, 103, 0, "window of a stream");
  ExpectLeft(ChangesASettingInACycle<Setting::NewReadMostly, false>, 103, 0, "advice");
  ExpectLeft(ChangesASettingInACycle<Setting::NewNode, false>, 103, 0, "disabled node");
}
CUAUDIT_CASE(SettingNotRestored, ALoopCallsTheFunctionAgain) {
  ExpectLeft(CallsItInALoop<Setting::Limit>, InHelper(1, 2), InHelper(1, 3), "limit");
  ExpectLeft(CallsItInALoop<Setting::CaptureMode>, InHelper(1, 2), InHelper(1, 3), "capture mode");
}
CUAUDIT_CASE(SettingNotRestored, AThreadHasLeftIt) { ExpectLeft(LeavesItInAThread<false>, InHelper(1, 2), 103, "limit"); }
CUAUDIT_CASE(SettingNotRestored, AFunctionForgetsWhatAnotherOneHadChosen) {
  ExpectLeft(TrimsAPool<false>, Deeper(1, 2, 1), 103, "threshold");
}
CUAUDIT_CASE(SettingNotRestored, AFunctionWithinAnother) {
  ExpectLeft(ChangesASettingTwice<true>, Deeper(1, 1, 1), InHelper(1, 5), "the inner one alone");
  ExpectLeft(ChangesASettingTwice<false>, InHelper(1, 2), 103, "both");
}

template <typename Program>
std::string SaidOf(const Program& program) {
  const Judgement judgement = JudgeProgram(program, false);
  return judgement.findings.empty() ? "" : Words(judgement.findings[0].detail);
}

CUAUDIT_CASE(SettingNotRestored, TheSettingIsNamed) {
  EXPECT_EQ(SaidOf(ChangesASetting<Setting::Limit, Caller::GoesOn>), "CU_LIMIT_STACK_SIZE 0 -> 5");
  EXPECT_EQ(SaidOf(ChangesASetting<Setting::Flags, Caller::GoesOn>), "flags 0 -> 5");
  EXPECT_EQ(SaidOf(ChangesASetting<Setting::FunctionAttribute, Caller::GoesOn>), "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES -1 -> 5");
  EXPECT_EQ(SaidOf(ChangesASetting<Setting::PoolOfDevice, Caller::GoesOn>), "memory pool");
  EXPECT_EQ(SaidOf(ChangesASetting<Setting::NewNode, Caller::GoesOn>), "enabled node 1 -> 0");
  EXPECT_EQ(SaidOf(ChangesASetting<Setting::PreferredLocation, Caller::GoesOn>), "CU_MEM_ADVISE_SET_PREFERRED_LOCATION");
}

template <typename Program>
void ExpectFound() {
  const Audit audit = Noted(Sweep(Lifecycle::Of<Program>("wrong").WithCurrentContext()));
  EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
}

CUAUDIT_CASE(SettingNotRestored, ALifecycleThatRaisesALimit) { ExpectFound<RaisesALimit<true>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatRelaxesTheCaptureMode) { ExpectFound<RelaxesTheCaptureMode<true>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatKeepsThePoolFull) { ExpectFound<KeepsThePoolFull<true>>(); }
CUAUDIT_CASE(SettingNotRestored, ALifecycleThatKeepsAWindow) { ExpectFound<KeepsAWindow<true>>(); }

}  // namespace
}  // namespace cuaudit::testing::settings_test
