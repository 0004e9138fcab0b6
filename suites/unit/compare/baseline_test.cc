// SPDX-License-Identifier: MIT
#include "harness/compare/baseline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::baseline_test {
namespace {

using namespace small_audits;  // NOLINT(google-build-using-namespace)

Baseline Two() { return BaselineOf(AuditOf({Sweep({Leak(), {"load", "event", {"cuMemAlloc", "cuMemAlloc"}, "main", "cuEventCreate"}})})); }

std::string Expected(const std::string& text) {
  const Result<Baseline> known = ParseBaseline(text, "base");
  EXPECT_EQ(known.status().exit(), known.ok() ? Exit::Clean : Exit::Usage);
  return known.ok() ? "" : known.status().message();
}

TEST(Baseline, WhatIsReadIsWrittenAsItWas) {
  const std::string text = BaselineText(Two());
  const Result<Baseline> known = ParseBaseline(text, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->defects.size(), 2U);
  EXPECT_EQ(known->runs.size(), 1U);
  EXPECT_EQ(BaselineText(*known), text);
}

TEST(Baseline, HasALineForEachRunAndDefectWhateverTheOrder) {
  Baseline two = Two();
  const std::string text = BaselineText(two);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_TRUE(text.starts_with("cuaudit baseline 2\n{\"case\":\"player\",\"mode\":\"sweep\"}\n")) << text;
  std::reverse(two.defects.begin(), two.defects.end());
  EXPECT_EQ(BaselineText(two), text);
  EXPECT_NE(text.find("\"title\":\"leak: 1 stream, acquired by cuStreamCreate < open_device; open_device"), std::string::npos) << text;
}

TEST(Baseline, LinesThatAMergeDoubledAreTakenTogether) {
  Leak more;
  more.failing = {"cuMemAlloc"};
  const std::string ours = BaselineText(BaselineOf(AuditOf({Sweep({Leak()})})));
  const std::string theirs = BaselineText(BaselineOf(AuditOf({Sweep({more})})));
  const std::string merged = ours + theirs.substr(theirs.find('\n') + 1) + ours.substr(ours.find('\n') + 1);
  const Result<Baseline> known = ParseBaseline(merged, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  ASSERT_EQ(known->defects.size(), 1U);
  EXPECT_EQ(known->defects[0].failing.size(), 2U);
  EXPECT_EQ(known->runs.size(), 1U);
}

TEST(Baseline, LinesOfRunsStandBeforeTheirDefectsAndMerge) {
  report::Run cycles;
  cycles.mode = report::Mode::Cycles;
  cycles.outcome = report::Outcome::Clean;
  report::Run interrupted = cycles;
  interrupted.outcome = report::Outcome::Interrupted;
  report::Audit audit = AuditOf({Sweep({Leak()}), cycles});
  audit.cases.push_back(AuditOf({cycles}, "aaa").cases[0]);
  audit.cases.push_back(AuditOf({interrupted}, "bbb").cases[0]);
  const std::string text = BaselineText(BaselineOf(audit));
  EXPECT_EQ(text.find("bbb"), std::string::npos) << "it proves nothing";
  const std::size_t first = text.find(R"({"case":"aaa","mode":"cycles"})");
  const std::size_t cycles_of_player = text.find(R"({"case":"player","mode":"cycles"})");
  const std::size_t sweep_of_player = text.find(R"({"case":"player","mode":"sweep"})");
  const std::size_t defect = text.find("fingerprint");
  EXPECT_TRUE(first < cycles_of_player && cycles_of_player < sweep_of_player && sweep_of_player < defect && defect != std::string::npos)
      << text;
  const Result<Baseline> known = ParseBaseline(text, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->runs.size(), 3U);
  EXPECT_EQ(BaselineText(*known), text);
}

TEST(Baseline, NamesWhatAnEditorOrAMergeHasLeft) {
  const std::string text = BaselineText(Two());
  const std::string marked = "\xef\xbb\xbf" + text;
  EXPECT_TRUE(IsBaseline(marked));
  EXPECT_EQ(Expected(marked),
            "base: line 1: expected 'cuaudit baseline 2', found a byte order mark before it: save it as UTF-8 without one");
  const std::size_t second = text.find('\n') + 1;
  const std::string advice = "': keep the lines of both sides, and take the markers out";
  for (const char* const marker : {"<<<<<<<", "|||||||", "=======", ">>>>>>>"}) {
    EXPECT_EQ(Expected(text.substr(0, second) + marker + " main\r\n" + text.substr(second)),
              "base: line 2: expected no marker of a merge conflict, found '" + std::string(marker) + advice);
  }
  EXPECT_EQ(Expected("<<<<<<< HEAD\n" + text), "base: line 1: expected no marker of a merge conflict, found '<<<<<<<" + advice);
}

TEST(Baseline, HostileNamesStayOnTheirLine) {
  Leak leak;
  leak.function = std::string("a\nb\x01\xff\"</script>") + std::string(10000, 'x');
  const std::string text = BaselineText(BaselineOf(AuditOf({Sweep({leak})}, "p")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(Expected(text), "");
}

TEST(Baseline, SaysTheLineAndWhatWasExpected) {
  const std::string text = BaselineText(Two());
  EXPECT_EQ(Expected(""), "base: line 1: expected 'cuaudit baseline 2'");
  EXPECT_EQ(Expected("cuaudit baseline 3\n"), "base: line 1: expected 'cuaudit baseline 2'");
  EXPECT_EQ(Expected("cuaudit baseline 2\nours\n"), "base: line 2: expected a run or a defect as a JSON object");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":\"a\"}\n"), "base: line 2: mode: expected this key");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":\"a\",\"mode\":\"swept\"}\n"),
            "base: line 2: mode: expected sweep, cycles, run or replay");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":7,\"mode\":\"sweep\"}\n"), "base: line 2: case: expected a string");
  EXPECT_EQ(Expected("cuaudit baseline 2\n[]\n"), "base: line 2: expected an object");
  EXPECT_EQ(Expected("cuaudit baseline 2\n{\"case\":\"a\",\"mode\":\"sweep\",\"title\":\"a leak\"}\n"),
            "base: line 2: fingerprint: expected this key");
  EXPECT_EQ(Expected("cuaudit baseline 1\n\n{}\n"), "base: line 3: case: expected this key");
  EXPECT_EQ(Expected("cuaudit baseline 1\n"), "");
  EXPECT_EQ(Expected("cuaudit baseline 1"), "");
  std::string windows = text;
  for (std::size_t at = 0; (at = windows.find('\n', at)) != std::string::npos; at += 2) windows.replace(at, 1, "\r\n");
  EXPECT_EQ(Expected(windows), "");
  for (std::size_t size = 20; size + 1 < text.size(); size += 37) {
    const std::string line = Expected(text.substr(0, size));
    if (text[size - 1] == '\n' || text[size] == '\n') continue;  // a whole line
    EXPECT_NE(line, "") << size;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace cuaudit::harness::baseline_test
