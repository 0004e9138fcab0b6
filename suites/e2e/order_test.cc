// SPDX-License-Identifier: MIT
// What the simulated driver proves of whole programs: each rule once wrong and once right, under every schedule, with both places named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suites/support/tool.h"

namespace cuaudit::e2e::order_test {
namespace {

using ::testing::HasSubstr;

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
  const Outcome text = RunCommand({Tool(), "run", "--driver=sim", "--output", "/dev/stdout", "--", Program("unordered"), "race"});
  EXPECT_THAT(text.out, HasSubstr("seen at cuMemsetD8Async"));
  EXPECT_THAT(text.out, HasSubstr("fill_second"));
  EXPECT_THAT(text.out, HasSubstr("collides with cuMemsetD8Async"));
  EXPECT_THAT(text.out, HasSubstr("write_first"));
  const std::string directory = TemporaryDirectory() + "/work";
  RunCommand(
      {Tool(), "run", "--driver=sim", "--keep", "--work-dir", directory, "--output", "/dev/null", "--", Program("unordered"), "race"});
  const Outcome explained = RunCommand({Tool(), "explain", directory + "/run.journal"});
  EXPECT_EQ(explained.exit, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("misuse unordered_access: device_memory"));
  EXPECT_THAT(explained.out, HasSubstr("collides with cuMemsetD8Async at"));
  EXPECT_THAT(explained.out, HasSubstr("world     schedule=lazy;devices=1;device_memory=8192MiB"));
}

TEST(Worlds, AreWhatWasAskedFor) {
  const Audit audit =
      RunAudit({"run", "--schedule=random:9", "--devices=3", "--device-memory=64MiB", "--profile=small"}, {Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  EXPECT_EQ(audit.report["driver"]["world"], "schedule=random:9;devices=3;device_memory=64MiB;profile=small");
  const Audit plain = RunAudit({"run"}, {Program("client_linked")});
  EXPECT_EQ(plain.report["driver"]["world"], "schedule=lazy;devices=1;device_memory=8192MiB;profile=h200;seed=1");
  EXPECT_NE(plain.report["driver"]["device"], audit.report["driver"]["device"]);
}

}  // namespace
}  // namespace cuaudit::e2e::order_test
