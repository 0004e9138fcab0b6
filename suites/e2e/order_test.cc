// SPDX-License-Identifier: MIT
// Whole programs on a simulated device that runs late: uses in the wrong order, waits that call no driver, and contexts that are reset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::order_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What the simulated driver proves of whole programs: each rule once wrong and once right, under every schedule, with both places named.

struct Story {
  const char* name;
  const char* finding;  // rule, kind and count
  const char* where;    // the call that is wrong, and the one it collides with
  const char* other;
  const char* others_function;  // a function of the program on its stack
};

constexpr Story kStories[] = {
    {"race", "unordered_access device_memory 1", "cuMemsetD8Async", "cuMemsetD8Async", "write_first"},
    {"freed", "freed_in_use stream_ordered_memory 1", "cuMemFree", "cuMemsetD8Async", "write_first"},
    {"early", "used_before_allocated stream_ordered_memory 1", "cuMemsetD8Async", "cuMemAllocAsync", "early"},
    {"graph_event", "destroyed_in_use event 1", "cuGraphLaunch", "cuGraphAddEventRecordNode", "graph_event"},
    {"host_freed", "host_freed_in_use pinned_memory 1", "cuMemFreeHost", "cuMemcpyHtoDAsync", "host_freed"},
    {"host_unregistered", "host_freed_in_use host_registration 1", "cuMemHostUnregister", "cuMemcpyDtoHAsync", "host_unregistered"},
    {"host_freed_elsewhere", "host_freed_in_use pinned_memory 1", "cuMemFreeHost", "cuMemcpyHtoDAsync", "host_freed_elsewhere"},
    {"told", "unordered_access device_memory 1", "cuMemsetD8Async", "cuMemsetD8Async", "write_first"},
    {"columns", "unordered_access device_memory 1", "cuMemsetD2D8Async", "cuMemsetD2D8Async", "columns"},
    // The five-step recipe, wrong in three ways, and with memory of a pool.
    {"recorded_early", "unordered_access device_memory 1", "cuMemsetD8Async", "cuMemcpyDtoDAsync", "read_second"},
    {"dropped_early", "unordered_access device_memory 1", "cuMemsetD8Async", "cuMemcpyDtoDAsync", "read_second"},
    {"waited_elsewhere", "unordered_access device_memory 1", "cuMemsetD8Async", "cuMemcpyDtoDAsync", "read_second"},
    {"freed_early", "freed_in_use stream_ordered_memory 1", "cuMemFreeAsync", "cuLaunchKernel", "freed_early"},
    {"foreign", "cross_context device_memory 1", "cuLaunchKernel", nullptr, nullptr},
};

void PrintTo(const Story& story, std::ostream* out) { *out << story.name; }

class Order : public ::testing::TestWithParam<Story> {};

std::vector<std::string> Functions(const nlohmann::json& stack) {
  std::vector<std::string> names;
  for (const nlohmann::json& frame : stack) names.push_back(frame["function"]);
  return names;
}

TEST_P(Order, IsProvedUnderEverySchedule) {
  for (const char* const schedule : {"lazy", "fifo", "random:3", "adversarial"}) {
    const Audit audit = RunAudit({"run", std::string("--schedule=") + schedule, "--devices=2"}, {Program("unordered"), GetParam().name});
    EXPECT_EQ(audit.outcome.exit, 1) << schedule << audit.outcome.err;
    ASSERT_EQ(audit.findings(), GetParam().finding) << schedule;
    const nlohmann::json& finding = audit.report["findings"][0];
    EXPECT_EQ(finding["where"], GetParam().where);
    EXPECT_THAT(Functions(finding["where_stack"]), ::testing::Contains("main"));
    EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr(std::string("--schedule=") + schedule));
    if (GetParam().other == nullptr) {
      EXPECT_TRUE(finding["other"].is_null());
    } else {
      EXPECT_EQ(finding["other"]["call"], GetParam().other);
      EXPECT_THAT(Functions(finding["other"]["stack"]), ::testing::Contains(GetParam().others_function));
    }
  }
}

TEST_P(Order, InOrderIsSilence) {
  for (const char* const schedule : {"lazy", "fifo", "random:3", "adversarial"}) {
    const Audit audit = RunAudit({"run", std::string("--schedule=") + schedule, "--devices=2"},
                                 {Program("unordered"), std::string(GetParam().name) + "_ordered"});
    EXPECT_EQ(audit.outcome.exit, 0) << schedule << audit.findings() << audit.outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Order, ::testing::ValuesIn(kStories), [](const auto& test) { return std::string(test.param.name); });

// The calls alone show it, so the simulator's proof of the same launch is not a second finding.
TEST(OrderOfGraphs, FreedMemoryInAGraphIsSaidOnce) {
  const Audit audit = RunAudit({"run"}, {Program("unordered"), "graph_memory"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "use_after_release device_memory 1");
  EXPECT_EQ(RunAudit({"run"}, {Program("unordered"), "graph_memory_ordered"}).findings(), "");
}

TEST(OrderInASweep, WhatTheCleanRunDoesIsOneFindingAndNoTrials) {
  const Audit audit = RunAudit({"sweep", "--call", "cuEventCreate", "--call", "cuMemFree"}, {Program("unordered"), "race"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  std::size_t races = 0;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    if (finding["rule"] != "unordered_access") continue;
    ++races;
    EXPECT_TRUE(finding["fault"].is_null()) << finding;
    EXPECT_THAT(finding["reproduce"].get<std::string>(), HasSubstr("cuaudit run"));
  }
  EXPECT_EQ(races, 1U);
}

TEST(OrderInASweep, AnEventThatFailedUnnoticedIsFoundWhereItFailed) {
  const Audit audit = RunAudit({"sweep"}, {Program("unordered"), "event_ignored"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  std::vector<std::string> failed;
  for (const nlohmann::json& finding : audit.report["findings"]) {
    if (finding["rule"] == "unordered_access") failed.push_back(finding["fault"]["call"]);
  }
  EXPECT_THAT(failed, ::testing::UnorderedElementsAre("cuEventRecord", "cuStreamWaitEvent"));
  EXPECT_EQ(RunAudit({"run"}, {Program("unordered"), "event_ignored"}).findings(), "");
}

TEST(OrderInCycles, IsFoundAndCounted) {
  const Audit audit = RunAudit({"cycles", "--n", "1,4"}, {Program("unordered"), "race", "{n}"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "unordered_access device_memory 1");
  EXPECT_EQ(RunAudit({"cycles", "--n", "1,4"}, {Program("unordered"), "race_ordered", "{n}"}).outcome.exit, 0);
}

TEST(OrderInWords, NamesBothPlaces) {
  const CommandResult text = RunCommand({Tool(), "run", "--driver=sim", "--output", "/dev/stdout", "--", Program("unordered"), "race"});
  EXPECT_THAT(text.out, HasSubstr("seen at cuMemsetD8Async"));
  EXPECT_THAT(text.out, HasSubstr("fill_second"));
  EXPECT_THAT(text.out, HasSubstr("collides with cuMemsetD8Async"));
  EXPECT_THAT(text.out, HasSubstr("write_first"));
  const std::string directory = TemporaryDirectory() + "/work";
  RunCommand(
      {Tool(), "run", "--driver=sim", "--keep", "--work-dir", directory, "--output", "/dev/null", "--", Program("unordered"), "race"});
  const CommandResult explained = RunCommand({Tool(), "explain", directory + "/run.journal"});
  EXPECT_EQ(explained.exit, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("misuse unordered_access: device_memory"));
  EXPECT_THAT(explained.out, HasSubstr("collides with cuMemsetD8Async at"));
  EXPECT_THAT(explained.out, HasSubstr("world     schedule=lazy;devices=1;device_memory=8192MiB"));
}

TEST(Worlds, AreWhatWasAskedFor) {
  const Audit audit =
      RunAudit({"run", "--schedule=random:9", "--devices=3", "--device-memory=64MiB", "--profile=small", "--undefined=crash"},
               {Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.report["driver"]["world"], "schedule=random:9;devices=3;device_memory=64MiB;profile=small;undefined=crash");
  const Audit plain = RunAudit({"run"}, {Program("client_linked")});
  EXPECT_EQ(plain.report["driver"]["world"], "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1");
  EXPECT_NE(plain.report["driver"]["device"], audit.report["driver"]["device"]);
}

// Programs that wait for the device without calling the driver, or that reset the context under their objects.

class Waiting : public ::testing::TestWithParam<const char*> {};

TEST_P(Waiting, GoesOnUnderEverySchedule) {
  for (const char* const schedule : {"lazy", "fifo", "random:3", "adversarial"}) {
    const Audit audit =
        RunAudit({"run", std::string("--schedule=") + schedule, "--deadline-ms", "20000"}, {Program("unattended"), GetParam()});
    EXPECT_EQ(audit.outcome.exit, 0) << schedule << ' ' << audit.findings() << audit.outcome.err;
    ASSERT_FALSE(audit.report.is_null());
    // Fifo runs a copy at once; nothing else here runs without somebody who steps in, but what chance or order brings.
    if (std::string(schedule) != "lazy") continue;
    EXPECT_EQ(audit.report["totals"]["forced_progress"], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Waiting, ::testing::Values("condition", "held", "callback", "graph", "flag"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Polling, EndsWhateverTheScheduleAndTheProgramAsks) {
  for (const char* const schedule : {"lazy", "fifo", "random:3", "adversarial"}) {
    const Audit audit = RunAudit({"run", std::string("--schedule=") + schedule}, {Program("unattended"), "polled"});
    EXPECT_EQ(audit.outcome.exit, 0) << schedule << ' ' << audit.findings() << audit.outcome.err;
    EXPECT_EQ(audit.report["driver"]["kernels"]["idle"], 2) << schedule;
  }
}

TEST(Polling, ForWhatAKernelWithoutAHostKernelWritesIsAHangWithItsReason) {
  const Audit audit = RunAudit({"run", "--schedule=fifo", "--deadline-ms", "2500"}, {Program("unattended"), "kernel"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  ASSERT_EQ(audit.report["findings"].size(), 1U) << audit.findings();
  const nlohmann::json& finding = audit.report["findings"][0];
  EXPECT_EQ(finding["rule"], "hang");
  EXPECT_THAT(finding["title"].get<std::string>(),
              HasSubstr("it may wait for a kernel that has no host kernel: register it with --kernels"));
  EXPECT_EQ(finding["where"], "(no driver call)") << "it polls";
  EXPECT_THAT(finding["detail"].get<std::string>(), HasSubstr("cuLaunchKernel"));
  EXPECT_EQ(audit.report["driver"]["kernels"]["idle"], 1);
  // Without such a kernel nothing is guessed.
  const Audit waits = RunAudit({"run", "--deadline-ms", "300"}, {Program("unattended"), "waits"});
  ASSERT_EQ(waits.report["findings"].size(), 1U) << waits.outcome.err;
  EXPECT_EQ(waits.report["findings"][0]["title"], "did not finish before its deadline");
}

TEST(Attended, NobodyStepsInWhereTheProgramWaits) {
  const Audit audit = RunAudit({"run"}, {Program("unattended"), "awaited"});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_FALSE(audit.report["totals"].contains("forced_progress"));
}

TEST(Unattended, TheTextSaysThatProgressWasForced) {
  const CommandResult outcome = RunCommand({Tool(), "run", "--driver=sim", "--", Program("unattended"), "condition"});
  EXPECT_THAT(outcome.out, HasSubstr("progress forced once")) << outcome.err;
}

TEST(Reset, WhatItDestroyedIsGoneWithItsContext) {
  const Audit audit = RunAudit({"run"}, {Program("unattended"), "reset"});
  EXPECT_EQ(audit.outcome.exit, 1) << audit.outcome.err;
  EXPECT_EQ(audit.findings(), "left_at_exit device_memory 1, left_at_exit stream 1");
  std::size_t orphaned = 0;
  for (const nlohmann::json& row : audit.report["live"]) {
    EXPECT_EQ(row["live"], 0) << row;
    if (row.contains("orphaned")) ++orphaned;
  }
  EXPECT_EQ(orphaned, 2U) << audit.report["live"];
  for (const nlohmann::json& finding : audit.report["findings"]) EXPECT_EQ(finding["where"], "cuDevicePrimaryCtxReset");
  const CommandResult text = RunCommand({Tool(), "run", "--driver=sim", "--allow-left", "--", Program("unattended"), "reset"});
  EXPECT_THAT(text.out, HasSubstr("never released, died with their context:"));
  EXPECT_THAT(text.out, HasSubstr("no rule broken, 2 objects orphaned"));
  EXPECT_THAT(text.out, Not(HasSubstr("left at the end")));
}

TEST(Reset, UsedAfterwardsIsAFindingBesideWhatIsGone) {
  const Audit audit = RunAudit({"run"}, {Program("unattended"), "used"});
  EXPECT_EQ(audit.findings(), "left_at_exit stream 1, use_after_release device_memory 1")
      << "the release that came too late was not forgotten";
  EXPECT_EQ(audit.result(), "findings");
  for (const nlohmann::json& row : audit.report["live"]) EXPECT_EQ(row["live"], 0) << row;
}

}  // namespace
}  // namespace cuaudit::e2e::order_test
