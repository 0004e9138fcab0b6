// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/lifetimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuaudit::harness::lifetimes_test {
namespace {

using report::Rule;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

report::Finding Left(const char* kind, const char* function, int line, std::uint64_t count = 1) {
  report::Finding finding;
  finding.rule = Rule::LeftAtExit;
  finding.kind = kind;
  finding.count = count;
  report::Frame frame;
  frame.module = "prog";
  frame.function = function;
  frame.line = line;
  finding.acquired = {"cuStreamCreate", {frame}};
  return finding;
}

report::Run Of(std::vector<report::Finding> findings) {
  report::Run run;
  run.findings = std::move(findings);
  return run;
}

Lifetimes Parsed(const std::string& text) {
  const Result<Lifetimes> table = Lifetimes::Parse("keeps", text);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return *table;
}

TEST(Lifetimes, WhatIsWrittenAllowsWhatItWasWrittenFor) {
  report::Run run = Of({Left("stream", "open(int)", 3, 2), Left("event", "wait", 9)});
  const Lifetimes table = Parsed(LifetimeTable(run));
  EXPECT_THAT(table.Allow(&run), IsEmpty());
  EXPECT_THAT(run.findings, IsEmpty());
  ASSERT_EQ(run.notes.size(), 2U);
  EXPECT_EQ(run.notes[0].rule, Rule::ProcessLifetime);
  EXPECT_EQ(run.notes[0].detail, "kept on purpose (--lifetime)");
}

TEST(Lifetimes, APlaceIsKnownAgainWhenItsLineMoves) {
  report::Run run = Of({Left("stream", "open(int)", 3)});
  const Lifetimes table = Parsed(LifetimeTable(run));
  report::Run moved = Of({Left("stream", "open(int)", 30)});
  EXPECT_THAT(table.Allow(&moved), IsEmpty());
  EXPECT_THAT(moved.findings, IsEmpty());
}

TEST(Lifetimes, MoreThanTheRowAllowsIsAFindingOfAll) {
  report::Run run = Of({Left("stream", "open", 3), Left("stream", "open", 4)});
  const std::string written = LifetimeTable(run);
  EXPECT_THAT(written, HasSubstr("\n2 stream v2-")) << "two places of one function are one row";
  report::Run more = Of({Left("stream", "open", 3), Left("stream", "open", 4, 2)});
  EXPECT_THAT(Parsed(written).Allow(&more), IsEmpty());
  ASSERT_EQ(more.findings.size(), 2U);
  EXPECT_EQ(more.findings[0].detail, "3 are left here, and --lifetime allows 2");
  EXPECT_THAT(more.notes, IsEmpty());
}

TEST(Lifetimes, OtherKindsPlacesAndRulesStayFindings) {
  report::Run run = Of({Left("stream", "open", 3)});
  const Lifetimes table = Parsed("# kept\n\n" + LifetimeTable(run));
  report::Finding other = Left("stream", "open", 3);
  other.rule = Rule::DoubleRelease;
  report::Run next = Of({Left("event", "open", 3), Left("stream", "reopen", 3), other});
  EXPECT_THAT(table.Allow(&next), ElementsAre(4U)) << "the row is in line 4, and nothing of it is left";
  EXPECT_EQ(next.findings.size(), 3U);
}

TEST(Lifetimes, ABadRowIsToldWithItsLine) {
  const auto why = [](const std::string& text) {
    const Result<Lifetimes> table = Lifetimes::Parse("keeps", text);
    return table.ok() ? std::string() : table.status().message();
  };
  EXPECT_EQ(why(""), "");
  EXPECT_EQ(why("  # only a comment"), "");
  EXPECT_EQ(why("1 stream v2-0123456789abcdef"), "");
  EXPECT_EQ(why("1\tstream v2-0123456789abcdef  any place\r\n"), "");
  EXPECT_THAT(why("\n0 stream v2-0123456789abcdef"), HasSubstr("--lifetime: keeps: line 2: expected a number"));
  EXPECT_THAT(why("-1 stream v2-0123456789abcdef"), HasSubstr("expected a number"));
  EXPECT_THAT(why("99999999999999999999999 stream v2-0123456789abcdef"), HasSubstr("expected a number"));
  EXPECT_EQ(why("1000000000 stream v2-0123456789abcdef"), "");
  EXPECT_THAT(why("1000000001 stream v2-0123456789abcdef"), HasSubstr("keeps: line 1: expected a number of objects (at most 1000000000)"));
  EXPECT_THAT(why("18446744073709551615 stream v2-0123456789abcdef"), HasSubstr("expected a number"));
  EXPECT_THAT(why("1x stream v2-0123456789abcdef"), HasSubstr("expected a number"));
  EXPECT_THAT(why("1"), HasSubstr("expected a kind"));
  EXPECT_THAT(why("1 stream"), HasSubstr("expected the fingerprint"));
  EXPECT_THAT(why("1 stream v2-0123456789abcdeg"), HasSubstr("expected the fingerprint"));
  EXPECT_THAT(why("1 stream v2-0123456789abcdef0"), HasSubstr("expected the fingerprint"));
}

}  // namespace
}  // namespace cuaudit::harness::lifetimes_test
