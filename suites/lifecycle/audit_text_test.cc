// SPDX-License-Identifier: MIT
// What is told of an audit: each fault of a finding with its places, and calls that are declared benign.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuaudit/lifecycle.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::audit_text_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What a test prints of an audit: each fault of a finding, and places that a reader finds.

report::Finding LeakOf(const std::string& kind) { return {.rule = words::Rule::Leak, .kind = kind, .count = 1}; }

// Each list of numbers is a defect.
Audit AuditOf(std::vector<report::Finding> findings, const std::vector<std::vector<std::size_t>>& defects) {
  report::Run run = {.findings = std::move(findings)};
  for (const std::vector<std::size_t>& of : defects) {
    report::Defect& defect = run.defects.emplace_back();
    for (const std::size_t finding : of) defect.members.push_back({{finding}, 1, 0});
  }
  Audit audit;
  audit.lifecycle = "pool";
  audit.outcome = AuditOutcome::Findings;
  harness::AddReport(run, &audit);
  audit.run = std::make_shared<const report::Run>(std::move(run));
  return audit;
}

TEST(AuditText, NamesEachFaultAndTheCallStackOfTheFirst) {
  report::Finding finding = LeakOf("stream");
  finding.fault.emplace().text = "cuEventCreate#1=OUT_OF_MEMORY,refuse";
  finding.fault->stack = {{"player", "make_events", "events.cc", 88, 0x10}};
  finding.then.emplace_back().text = "cuStreamDestroy#1=INVALID_CONTEXT,refuse";
  EXPECT_THAT(AuditOf({finding}, {{0}}).Text(),
              HasSubstr("     lost when cuEventCreate#1=OUT_OF_MEMORY,refuse failed, and then cuStreamDestroy#1=INVALID_CONTEXT,refuse\n"
                        "       make_events events.cc:88\n"
                        "     then cuStreamDestroy#1=INVALID_CONTEXT,refuse\n"));
}

TEST(AuditText, WhatIsToleratedLeavesItsDefect) {
  Audit audit = AuditOf({LeakOf("stream"), LeakOf("event"), LeakOf("module")}, {{0}, {1, 2}});
  EXPECT_THAT(audit.Text(), AllOf(StartsWith("pool: 2 defects, 3 findings\n"), HasSubstr("1 event, 1 module")));
  audit.Tolerate([](const Finding& finding) { return finding.kind != "module"; });
  ASSERT_EQ(audit.defects.size(), 1U);
  EXPECT_THAT(audit.defects[0].findings, ElementsAre(0U));
  EXPECT_EQ(audit.findings[0].kind, "module");
  EXPECT_THAT(audit.Text(), AllOf(StartsWith("pool: 1 defect\n"), HasSubstr("1. leak: 1 module\n"), Not(HasSubstr("event"))));
}

// The report keeps what a suppression accepts; the findings of the audit do not.
TEST(AuditText, WhatIsToleratedIsNotWhatIsSuppressed) {
  Audit audit = AuditOf({LeakOf("stream"), LeakOf("event"), LeakOf("module")}, {{0}, {1}, {2}});
  report::Run run = *audit.run;
  run.defects[0].suppressed.emplace().until = "2027-03-31";
  audit.run = std::make_shared<const report::Run>(std::move(run));
  audit.findings.erase(audit.findings.begin());
  audit.defects.erase(audit.defects.begin());
  for (Defect& defect : audit.defects) --defect.findings.front();
  audit.Tolerate([](const Finding& finding) { return finding.kind == "event"; });
  EXPECT_THAT(audit.Text(), AllOf(StartsWith("pool: 1 defect; 1 suppressed\n"), HasSubstr("1. leak: 1 module\n"),
                                  HasSubstr("leak: 1 stream"), Not(HasSubstr("event"))));
}

TEST(AuditText, OfASourceFileItsNameIsShownWithoutItsDirectories) {
  report::Finding finding;
  finding.acquired = {"cuStreamCreate",
                      {{"player", "make_stream", "/home/someone/src/picture.cc", 61, 0x10},
                       {"player", "run", "player.cc", 7, 0x20},
                       {"player", "", "", 0, 0x30}}};
  report::Run run = {.findings = {finding}};
  Audit audit;
  harness::AddReport(run, &audit);
  ASSERT_EQ(audit.findings.size(), 1U);
  EXPECT_THAT(audit.findings[0].acquired_stack, ElementsAre("make_stream picture.cc:61", "run player.cc:7", "player+0x30"));
}

// A benign declaration excuses the call that it names, and nothing else.

// The first event is optional; the second one is not.
TEST(Swallowed, OneOptionalCallExcusesNoOther) {
  CUevent event[2] = {};
  const auto lifecycle = Lifecycle("two_events")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) {
                               for (CUevent& one : event) {
                                 if (driver.EventCreate(&one, 0) != CUDA_SUCCESS) one = nullptr;
                               }
                               return CUDA_SUCCESS;
                             })
                             .Teardown([&](DriverRef driver) {
                               for (CUevent& one : event) {
                                 if (one != nullptr && driver.EventDestroy(one) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
                               }
                               return CUDA_SUCCESS;
                             })
                             .AnyCode()
                             .Benign("cuEventCreate#1");
  const Audit audit = Sweep(lifecycle, {.calls = {"cuEventCreate"}});
  EXPECT_THAT(Texts(audit), ElementsAre("swallowed after cuEventCreate#2=OUT_OF_MEMORY,refuse")) << audit.Text();
}

// The stream is optional, an event stands in for it, and nobody hears that the event could not be destroyed.
TEST(Swallowed, AReleaseAfterABenignFault) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  const auto lifecycle = Lifecycle("falls_back")
                             .WithCurrentContext()
                             .Init([&](DriverRef driver) {
                               stream = nullptr;
                               event = nullptr;
                               if (driver.StreamCreate(&stream, 0) == CUDA_SUCCESS) return CUDA_SUCCESS;
                               stream = nullptr;
                               return driver.EventCreate(&event, 0);
                             })
                             .Teardown([&](DriverRef driver) {
                               if (event != nullptr) (void)driver.EventDestroy(event);
                               return stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(stream);
                             })
                             .Benign("cuStreamCreate");
  const Audit audit = Replay(lifecycle, {"cuStreamCreate#1=OUT_OF_MEMORY,refuse", "cuEventDestroy#1=INVALID_CONTEXT,refuse"});
  EXPECT_THAT(Texts(audit), Contains(StartsWith("swallowed after cuStreamCreate#1"))) << audit.Text();
}

}  // namespace
}  // namespace cuaudit::testing::audit_text_test
