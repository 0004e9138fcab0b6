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

std::vector<KnownDefect> Two() {
  return KnownDefects(AuditOf({Sweep({Leak(), {"load", "event", {"cuMemAlloc", "cuMemAlloc"}, "main", "cuEventCreate"}})}));
}

std::string Expected(const std::string& text) {
  const Result<std::vector<KnownDefect>> known = ParseBaseline(text, "base");
  EXPECT_EQ(known.status().exit(), known.ok() ? Exit::Clean : Exit::Usage);
  return known.ok() ? "" : known.status().message();
}

TEST(Baseline, WhatIsReadIsWrittenAsItWas) {
  const std::string text = BaselineText(Two());
  const Result<std::vector<KnownDefect>> known = ParseBaseline(text, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  EXPECT_EQ(known->size(), 2U);
  EXPECT_EQ(BaselineText(*known), text);
}

TEST(Baseline, HasALineForEachDefectWhateverTheOrder) {
  std::vector<KnownDefect> two = Two();
  const std::string text = BaselineText(two);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  std::reverse(two.begin(), two.end());
  EXPECT_EQ(BaselineText(two), text);
  EXPECT_NE(text.find("\"title\":\"leak: 1 stream, acquired by cuStreamCreate < open_device; open_device"), std::string::npos) << text;
}

TEST(Baseline, LinesThatAMergeDoubledAreTakenTogether) {
  Leak more;
  more.failing = {"cuMemAlloc"};
  const std::string ours = BaselineText(KnownDefects(AuditOf({Sweep({Leak()})})));
  const std::string theirs = BaselineText(KnownDefects(AuditOf({Sweep({more})})));
  const std::string merged = ours + theirs.substr(theirs.find('\n') + 1) + ours.substr(ours.find('\n') + 1);
  const Result<std::vector<KnownDefect>> known = ParseBaseline(merged, "base");
  ASSERT_TRUE(known.ok()) << known.status().message();
  ASSERT_EQ(known->size(), 1U);
  EXPECT_EQ((*known)[0].failing.size(), 2U);
}

TEST(Baseline, HostileNamesStayOnTheirLine) {
  Leak leak;
  leak.function = std::string("a\nb\x01\xff\"</script>") + std::string(10000, 'x');
  const std::string text = BaselineText(KnownDefects(AuditOf({Sweep({leak})}, "p")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(Expected(text), "");
}

TEST(Baseline, SaysTheLineAndWhatWasExpected) {
  const std::string text = BaselineText(Two());
  EXPECT_EQ(Expected(""), "base: line 1: expected 'cuaudit baseline 1'");
  EXPECT_EQ(Expected("cuaudit baseline 2\n"), "base: line 1: expected 'cuaudit baseline 1'");
  EXPECT_EQ(Expected("cuaudit baseline 1\n<<<<<<< ours\n"), "base: line 2: expected a defect as a JSON object");
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
