// SPDX-License-Identifier: MIT
// Two simulated devices: what goes wrong between them, each beside the same program that does it right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::devices_test {
namespace {

using ::testing::HasSubstr;

Audit Two(const char* command, const char* mode, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {command, "--devices=2"});
  return RunAudit(options, {Program("two_devices"), mode});
}

TEST(Devices, EachTrialHasAsManyAsTheRunWasAskedFor) {
  EXPECT_EQ(RunAudit({"run"}, {Program("two_devices"), "right"}).outcome.exit, 3) << "with one device the program fails";
  const Audit audit = Two("sweep", "right");
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err << audit.findings();
  EXPECT_EQ(audit.result(), "clean");
  EXPECT_THAT(audit.report["driver"]["world"].get<std::string>(), HasSubstr("devices=2;"));
  EXPECT_EQ(audit.report["totals"]["trials"], audit.report["totals"]["fired"]);
  EXPECT_EQ(Two("sweep", "right", {"--isolation=spawn"}).result(), "clean");
}

TEST(Devices, MemoryFreedWhereADeadContextOfTheOtherIsCurrent) {
  const Audit audit = Two("run", "freed_elsewhere");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.result(), "findings");
  EXPECT_EQ(audit.findings(), "left_at_exit device_memory 1, wrong_context device_memory 1");
  EXPECT_EQ(audit.report["findings"][0]["where"], "cuMemFree");
  EXPECT_THAT(audit.report["findings"][0]["reproduce"].get<std::string>(), HasSubstr(" --devices=2 "));
  EXPECT_EQ(Two("run", "right").result(), "clean");
}

TEST(Devices, ThePrimaryContextOfTheOtherDeviceGivenBack) {
  const Audit audit = Two("run", "wrong_primary");
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(audit.findings(), HasSubstr("over_released_primary_context primary_context 1"));
  EXPECT_THAT(audit.findings(), HasSubstr("left_at_exit primary_context 1"));
}

// A lost context takes its own objects along, not those of the other device.
TEST(Devices, OneContextIsLostAndTheOtherDeviceIsForgotten) {
  const Audit audit = Two("sweep", "forgets_other", {"--how=sticky", "--call=cuMemsetD8Async", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.verdicts(), R"({"leak":2})") << audit.findings();
  EXPECT_EQ(audit.findings(),
            "leak device_memory 1, leak device_memory 1, leak primary_context 1, leak primary_context 1, leak stream 1, leak stream 1");
  EXPECT_EQ(audit.report["defects"].size(), 2U) << "one for each way out";
}

TEST(Devices, OneContextIsLostAndTheOtherDeviceGoesOn) {
  const Audit audit = Two("sweep", "forgets_other_right", {"--how=sticky", "--call=cuMemsetD8Async", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_EQ(audit.report["totals"]["fired"], 2);
}

// Peer access is no object. It stays with the context, and the next cycle cannot enable it again.
TEST(Devices, PeerAccessThatStaysEnabledSpoilsTheNextCycle) {
  const Audit audit = Two("sweep", "peer", {"--call=cuMemcpyPeer", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_THAT(audit.findings(), HasSubstr("not_recovered")) << audit.findings();
  EXPECT_THAT(audit.report["findings"].dump(), HasSubstr("cuCtxEnablePeerAccess"));
}

TEST(Devices, PeerAccessThatIsDisabledIsSilence) {
  const Audit audit = Two("sweep", "peer_right", {"--call=cuMemcpyPeer", "--depth=1"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.findings() << audit.outcome.err;
  EXPECT_EQ(audit.result(), "clean") << audit.findings();
  EXPECT_GE(audit.report["totals"]["recovery_checked"], 1);
}

}  // namespace
}  // namespace cuaudit::e2e::devices_test
