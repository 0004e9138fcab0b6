// SPDX-License-Identifier: MIT
// What is told of an audit: each fault of a finding with its places, and calls that are declared benign.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuaudit/lifecycle.h"
#include "harness/lifecycle/sweep_lifecycle.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::audit_text_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a test prints of an audit: each fault of a finding, and places that a reader finds.

TEST(AuditText, NamesEachFaultAndTheCallStackOfTheFirst) {
  Finding finding;
  finding.rule = "leak";
  finding.faults = {"cuEventCreate#1=OUT_OF_MEMORY,refuse", "cuStreamDestroy#1=INVALID_CONTEXT,refuse"};
  finding.fault_stack = {"make_events events.cc:88"};
  Audit audit;
  audit.outcome = AuditOutcome::Findings;
  audit.findings = {finding};
  audit.defects.emplace_back().findings = {0};
  EXPECT_THAT(audit.Text(), HasSubstr("    fault cuEventCreate#1=OUT_OF_MEMORY,refuse\n"
                                      "        make_events events.cc:88\n"
                                      "    then cuStreamDestroy#1=INVALID_CONTEXT,refuse\n"));
}

TEST(AuditText, WhatIsToleratedLeavesItsDefect) {
  Audit audit;
  audit.outcome = AuditOutcome::Findings;
  for (const char* const kind : {"stream", "event", "module"}) {
    audit.findings.emplace_back().rule = "leak";
    audit.findings.back().kind = kind;
  }
  audit.defects.resize(2);
  audit.defects[0].findings = {0};
  audit.defects[1].findings = {1, 2};
  audit.Tolerate([](const Finding& finding) { return finding.kind != "module"; });
  ASSERT_EQ(audit.defects.size(), 1U);
  EXPECT_THAT(audit.defects[0].findings, ElementsAre(0U));
  EXPECT_EQ(audit.findings[0].kind, "module");
  EXPECT_THAT(audit.Text(), HasSubstr("1 defect\n"));
}

TEST(AuditText, OfASourceFileItsNameIsShownWithoutItsDirectories) {
  report::Finding finding;
  finding.acquired = {"cuStreamCreate",
                      {{"player", "make_stream", "/home/someone/src/picture.cc", 61, 0x10},
                       {"player", "run", "player.cc", 7, 0x20},
                       {"player", "", "", 0, 0x30}}};
  report::Run run;
  run.findings = {finding};
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
