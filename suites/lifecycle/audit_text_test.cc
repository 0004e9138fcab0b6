// SPDX-License-Identifier: MIT
// What a test prints of an audit: each fault of a finding, and places that a reader finds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/lifecycle/audit_report.h"

namespace cuaudit::testing::audit_text_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace cuaudit::testing::audit_text_test
