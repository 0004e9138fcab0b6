// SPDX-License-Identifier: MIT
#include "harness/compare/suppressions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::suppressions_test {
namespace {

using namespace small_audits;  // NOLINT(google-build-using-namespace)

constexpr char kToday[] = "2026-11-26";
[[maybe_unused]] const int kSet = setenv("CUAUDIT_TODAY", kToday, 1);
constexpr char kTail[] = "reason = 'r'\nowner = 'o'\nuntil = 2027-03-31\n";

std::string Entry(const std::string& what, const std::string& tail = kTail) { return "[[suppression]]\n" + what + "\n" + tail; }

std::string Expected(const std::string& text) {
  const Result<Suppressions> read = Suppressions::Parse(text, "s.toml");
  EXPECT_EQ(read.status().exit(), read.ok() ? Exit::Clean : Exit::Usage);
  return read.ok() ? "" : read.status().message();
}

// The report after the entries were applied.
report::Run Applied(const std::string& text, report::Run run = Sweep({Leak()}), std::vector<std::string>* unused = nullptr) {
  Result<Suppressions> read = Suppressions::Parse(text, "s.toml");
  EXPECT_TRUE(read.ok()) << read.status().message();
  read->Apply(kToday, &run);
  if (unused != nullptr) *unused = read->Unused();
  return run;
}

bool Accepts(const std::string& what) { return Applied(Entry(what)).defects[0].suppressed.has_value(); }

TEST(Suppressions, AFingerprintAcceptsItsDefect) {
  const std::string fingerprint = Sweep({Leak()}).defects[0].fingerprint;
  const report::Run run = Applied("\n" + Entry("fingerprint = '" + fingerprint + "'"));
  ASSERT_TRUE(run.defects[0].suppressed);
  EXPECT_FALSE(run.defects[0].suppressed->expired);
  EXPECT_EQ(run.defects[0].suppressed->until, "2027-03-31");
  EXPECT_EQ(run.defects[0].suppressed->entry, "s.toml:2");
  EXPECT_EQ(run.outcome, report::Outcome::Clean);
  EXPECT_FALSE(Accepts("fingerprint = 'v2-0000000000000000'"));
  EXPECT_FALSE(Accepts("fingerprint = '" + fingerprint + "-2'"));
}

TEST(Suppressions, EveryPatternHasToFit) {
  EXPECT_TRUE(Accepts("rule = 'leak'"));
  EXPECT_TRUE(Accepts("kind = 'str?am'"));
  EXPECT_TRUE(Accepts("module = 'play*'"));
  EXPECT_TRUE(Accepts("acquired_in = 'open_*'"));
  EXPECT_TRUE(Accepts("failing_call = 'cuEvent*'"));
  EXPECT_TRUE(Accepts("blamed = '*device'"));
  EXPECT_TRUE(Accepts("rule = 'leak'\nkind = 'stream'\nblamed = 'open_device'"));
  for (const char* const wrong : {"rule = 'growth'", "kind = 'event'", "module = 'lib*'", "acquired_in = 'open'", "failing_call = 'cuMem*'",
                                  "blamed = 'x'", "rule = 'leak'\nkind = 'event'"}) {
    EXPECT_FALSE(Accepts(wrong)) << wrong;
  }
}

// Whoever accepts a lost stream does not accept the event that is lost with it.
TEST(Suppressions, AKindHasToFitAllThatIsLost) {
  report::Run both = Sweep({Leak()});
  both.findings.push_back(both.findings[0]);
  both.findings[1].kind = "event";
  FindDefects(&both);
  ASSERT_EQ(both.defects.size(), 1U);
  EXPECT_FALSE(Applied(Entry("kind = 'stream'"), both).defects[0].suppressed);
  EXPECT_TRUE(Applied(Entry("kind = '*e*'"), both).defects[0].suppressed);
}

// The library that parses TOML recurses once for each dot.
TEST(Suppressions, AKeyIsNotDeep) {
  const std::string expected = "s.toml:2: expected at most 64 dots in a key";
  const auto dots = [](int count) {
    std::string key = "a";
    for (; count > 0; --count) key += ".a";
    return key;
  };
  EXPECT_EQ(Expected("\n" + dots(400000) + " = 1\n"), expected);
  EXPECT_EQ(Expected("\n[" + dots(65) + "]\n"), expected);
  EXPECT_EQ(Expected("\n\"'\" . " + dots(65) + " = 1\n"), expected);
  EXPECT_EQ(Expected("\n'\\'." + dots(64) + " = 1\n"), expected) << "a literal string has no escapes";
  EXPECT_EQ(Expected("\nx = { " + dots(33) + " = { " + dots(33) + " = 1 } }\n"), expected);
  EXPECT_NE(Expected(dots(64) + " = 1\n").find("a: no such key, expected [[suppression]]"), std::string::npos);
}

TEST(Suppressions, DotsOfATextAreNoKey) {
  const std::string dots(100, '.');
  const std::string tail = "owner = 'o'\nuntil = 2027-03-31\n";
  for (const std::string& reason : {"\"\\\"" + dots + "\"", "'" + dots + "'", "\"\"\"\n" + dots + "\"\n" + dots + "\\\"\"\"\"",
                                    "'''\n" + dots + "'''", "'r' # " + dots}) {
    EXPECT_EQ(Expected(Entry("rule = 'leak'", "reason = " + reason + "\n" + tail)), "") << reason;
  }
}

TEST(Suppressions, AnExpiredEntryAcceptsNothing) {
  const auto until = [](const std::string& day) { return Applied(Entry("rule = 'l*'", "reason = 'r'\nowner = 'o'\nuntil = " + day)); };
  EXPECT_TRUE(until("2026-11-25").defects[0].suppressed->expired);
  EXPECT_EQ(until("2026-11-25").outcome, report::Outcome::Findings);
  EXPECT_FALSE(until("2026-11-26").defects[0].suppressed->expired) << "the last day on which it holds";
  EXPECT_FALSE(until("'2026-11-27'").defects[0].suppressed->expired);
}

TEST(Suppressions, OneEntryThatHoldsIsEnough) {
  const std::string expired = Entry("rule = 'l*'", "reason = 'r'\nowner = 'o'\nuntil = 2020-01-01\n");
  std::vector<std::string> unused;
  const report::Run run = Applied(expired + Entry("kind = 'stream'") + Entry("kind = 'event'"), Sweep({Leak()}), &unused);
  EXPECT_FALSE(run.defects[0].suppressed->expired);
  EXPECT_EQ(unused, std::vector<std::string>{"s.toml:11"});
}

TEST(Suppressions, WhatIsLeftDecidesTheOutcome) {
  const Leak other = {"load", "event", {"cuMemAlloc"}, "main", "cuEventCreate"};
  EXPECT_EQ(Applied(Entry("kind = 'stream'"), Sweep({Leak(), other})).outcome, report::Outcome::Findings);
  EXPECT_EQ(Applied(Entry("rule = 'l*'"), Sweep({Leak(), other})).outcome, report::Outcome::Clean);
  report::Run missed = Sweep({Leak()});
  missed.message.never_fired.trials[report::Missed::Unfired] = 1;
  EXPECT_EQ(Applied(Entry("rule = 'l*'"), missed).outcome, report::Outcome::NotExercised);
  report::Run uncovered = Sweep({Leak()});
  uncovered.message.coverage = report::Part{10, 900};
  EXPECT_EQ(Applied(Entry("rule = 'l*'"), uncovered).outcome, report::Outcome::NotExercised);
  report::Run abandoned = Sweep({Leak()});
  abandoned.message.abandoned = report::Part{1, 4};
  EXPECT_EQ(Applied(Entry("rule = 'l*'"), abandoned).outcome, report::Outcome::NotExercised) << "nobody looked at the heap";
  report::Run failed = Sweep({Leak()});
  failed.message.bad_end = report::BadEnd{"exited with status 3", 0};
  EXPECT_EQ(Applied(Entry("rule = 'l*'"), failed).outcome, report::Outcome::Error);
  EXPECT_EQ(Applied(Entry("rule = 'l*'"), Sweep({})).outcome, report::Outcome::Clean);
}

// Whoever compares a finished result may accept less than who audited it.
TEST(Suppressions, ThoseOfTheReportGiveWayToOthers) {
  const report::Run accepted = Applied(Entry("kind = 'stream'"));
  ASSERT_EQ(accepted.outcome, report::Outcome::Clean);
  EXPECT_EQ(Applied(Entry("kind = 'event'"), accepted).outcome, report::Outcome::Findings);
  EXPECT_EQ(Applied(Entry("rule = 'leak'"), accepted).outcome, report::Outcome::Clean);
  report::Run missed = Sweep({Leak()});
  missed.message.never_fired.trials[report::Missed::Unfired] = 1;
  missed = Applied(Entry("kind = 'stream'"), missed);
  ASSERT_EQ(missed.outcome, report::Outcome::NotExercised);
  EXPECT_EQ(Applied(Entry("kind = 'event'"), missed).outcome, report::Outcome::Findings);
  report::Run abandoned = Sweep({Leak()});
  abandoned.message.abandoned = report::Part{1, 4};
  abandoned = Applied(Entry("kind = 'stream'"), abandoned);
  ASSERT_EQ(abandoned.outcome, report::Outcome::NotExercised);
  abandoned = Applied(Entry("kind = 'event'"), abandoned);
  EXPECT_EQ(abandoned.outcome, report::Outcome::Findings);
  EXPECT_TRUE(abandoned.message.abandoned) << "said beside findings as well";
  report::Run left = Sweep({Leak()});
  left.mode = report::Mode::Run;
  left.findings[0].rule = report::Rule::LeftAtExit;
  FindDefects(&left);
  left.outcome = report::Outcome::Left;
  left = Applied(Entry("kind = 'stream'"), left);
  ASSERT_EQ(left.outcome, report::Outcome::Clean);
  EXPECT_EQ(Applied(Entry("kind = 'event'"), left).outcome, report::Outcome::Left);
  report::Run interrupted = Applied(Entry("kind = 'stream'"));
  interrupted.outcome = report::Outcome::Interrupted;
  EXPECT_EQ(Applied(Entry("kind = 'event'"), interrupted).outcome, report::Outcome::Interrupted);
}

TEST(Suppressions, SaysThePlaceAndWhatWasExpected) {
  const std::string keys = "expected a fingerprint, or patterns: rule, kind, module, acquired_in, failing_call, blamed";
  EXPECT_EQ(Expected(""), "");
  EXPECT_EQ(Expected(Entry("rule = 'leak'")), "");
  EXPECT_EQ(Expected(Entry("rule = 'leak'", "owner = 'o'\nuntil = 2027-03-31")), "s.toml:1:1: expected reason in each suppression");
  EXPECT_EQ(Expected(Entry("rule = 'leak'", "reason = 'o'\nuntil = 2027-03-31")), "s.toml:1:1: expected owner in each suppression");
  EXPECT_EQ(Expected("\n" + Entry("rule = 'leak'", "reason = 'r'\nowner = 'o'")),
            "s.toml:2:1: expected until, the last day on which the suppression holds, such as 2027-03-31");
  EXPECT_EQ(Expected(Entry("")), "s.toml:1:1: " + keys);
  EXPECT_EQ(Expected(Entry("rule = ''")), "s.toml:2:8: rule: found '', expected a text that is not empty");
  EXPECT_EQ(Expected(Entry("rule = 7")), "s.toml:2:8: rule: found 7, expected a text that is not empty");
  EXPECT_EQ(Expected(Entry("blame = 'main'")),
            "s.toml:2:1: blame: no such key, expected a key of a suppression: fingerprint, rule, kind, module, acquired_in, failing_call, "
            "blamed, "
            "reason, owner, until, did you mean blamed?");
  EXPECT_EQ(Expected(Entry("rule = 'leak'", "reason = 'r'\nowner = 'o'\nuntil = 'soon'")),
            "s.toml:5:9: until: found 'soon', expected a day such as 2027-03-31");
  EXPECT_EQ(Expected(Entry("rule = 'leak'", "reason = 'r'\nowner = 'o'\nuntil = '2027-02-29'")),
            "s.toml:5:9: until: found '2027-02-29', expected a day such as 2027-03-31");
  EXPECT_EQ(Expected("suppression = 3\n"), "s.toml:1:1: suppression: found 3, expected [[suppression]]");
  EXPECT_EQ(Expected("suppression = [3]\n"), "s.toml:1:1: suppression: found a list, expected [[suppression]]");
  EXPECT_EQ(Expected("\n[suppressions]\n"), "s.toml:2:2: suppressions: no such key, expected [[suppression]], did you mean suppression?");
  EXPECT_TRUE(Expected("a = \n").starts_with("s.toml:1:")) << Expected("a = \n");
  EXPECT_NE(Expected("a = \n").find(": expected TOML: "), std::string::npos);
  EXPECT_NE(Expected("[{").find(": expected TOML: "), std::string::npos);
}

// Such an entry would be taken for one that holds, and accept nothing.
TEST(Suppressions, ARuleAndAKindAreOnesThatThereAre) {
  EXPECT_EQ(Expected(Entry("rule = 'leek'")),
            "s.toml:2:8: rule: found 'leek', expected a rule, or a pattern that fits one (cuaudit list rules), did you mean leak?");
  EXPECT_EQ(Expected(Entry("kind = 'streem'")),
            "s.toml:2:8: kind: found 'streem', expected a kind, or a pattern that fits one (cuaudit list kinds), did you mean stream?");
  EXPECT_NE(Expected(Entry("rule = 'grw*'")), "");
  for (const char* const right : {"rule = 'gro*'", "kind = 'host_*'", "kind = 'resident_bytes'", "kind = 'loaded_object'",
                                  "kind = 'device_bytes'", "kind = 'mutex'"}) {
    EXPECT_EQ(Expected(Entry(right)), "") << right;
  }
}

TEST(Suppressions, AFailingCallIsOneThatThereIs) {
  EXPECT_EQ(Expected(Entry("failing_call = 'cuMemAloc'")),
            "s.toml:2:16: failing_call: found 'cuMemAloc', expected a call, or a pattern that fits one (cuaudit list calls), "
            "did you mean cuMemAlloc?");
  for (const char* const right : {"cuMemAlloc", "cuMem*", "malloc"}) {
    EXPECT_EQ(Expected(Entry("failing_call = '" + std::string(right) + "'")), "") << right;
  }
}

TEST(Suppressions, AFingerprintHasItsForm) {
  for (const char* const right : {"v2-0123456789abcdef", "v2-0123456789abcdef-12", "v10-0123456789abcdef"}) {
    EXPECT_EQ(Expected(Entry("fingerprint = '" + std::string(right) + "'")), "") << right;
  }
  for (const char* const wrong :
       {"hello", "v2-*", "v2-1", "v2-0123456789abcde", "v2-0123456789abcdef0", "v2-0123456789abcdef-", "v-0123456789abcdef",
        "v2-0123456789ABCDEF", "2-0123456789abcdef", "v2-0123456789abcdef-x", "v2-0123456789abcdef "}) {
    EXPECT_EQ(Expected(Entry("fingerprint = '" + std::string(wrong) + "'")),
              "s.toml:2:15: fingerprint: found '" + std::string(wrong) +
                  "', expected a fingerprint as reports show it, such as v2-0123456789abcdef");
  }
}

TEST(Suppressions, AnEntryThatAcceptsEverythingIsRefused) {
  const std::string expected = "s.toml:1:1: expected a pattern that is more than * and ?: this one accepts every defect";
  for (const char* const all : {"rule = '*'", "module = '**'", "blamed = '?*'", "kind = '*'\nrule = '*'"}) {
    EXPECT_EQ(Expected(Entry(all)), expected) << all;
  }
  EXPECT_EQ(Expected(Entry("rule = 'leak'\nkind = '*'")), "");
}

TEST(Suppressions, HostileFilesGetOneLine) {
  const std::string good = Entry("rule = 'leak'");
  std::vector<std::string> texts = {"a = '\xff'",
                                    std::string("a = ") + std::string(100000, '['),
                                    std::string("\0\0", 2),
                                    "[[suppression]]\n\"a\\nb\\u001b\" = 1\n",
                                    Entry("rule = \"l\\nk\\u001b[31m\""),
                                    Entry("\"" + std::string(10000, 'x') + "\" = 1"),
                                    Entry("rule = '" + std::string(10000, 'x') + "'"),
                                    "[[suppression.suppression]]\n",
                                    "suppression = [[]]\n",
                                    Entry("rule = 'leak'\nrule = 'leak'")};
  for (std::size_t size = 20; size + 1 < good.size(); size += 7) texts.push_back(good.substr(0, size));
  for (const std::string& text : texts) {
    const std::string expected = Expected(text);
    EXPECT_TRUE(expected.starts_with("s.toml:")) << text.substr(0, 200) << ": " << expected.substr(0, 300);
    EXPECT_EQ(expected.find_first_of("\n\r\x1b"), std::string::npos) << expected.substr(0, 300);
  }
}

TEST(Suppressions, GlobsKnowStarsAndQuestionMarks) {
  EXPECT_TRUE(Fits("", ""));
  EXPECT_TRUE(Fits("*", ""));
  EXPECT_TRUE(Fits("a*b?c*", "aXXbYcZ"));
  EXPECT_TRUE(Fits("*aab", "aaaab"));
  EXPECT_FALSE(Fits("a?", "a"));
  EXPECT_FALSE(Fits("a", "ab"));
  EXPECT_FALSE(Fits(std::string(60, '*') + "b", std::string(10000, 'a'))) << "and takes no time for it";
}

TEST(Suppressions, DaysAreThoseOfTheCalendar) {
  EXPECT_TRUE(IsDay("2028-02-29"));
  EXPECT_TRUE(IsDay("2000-02-29"));
  for (const char* const wrong :
       {"2027-02-29", "1900-02-29", "2027-13-01", "2027-00-01", "2027-01-32", "2027-1-1", "27-01-01", "", "2027-01-0a"}) {
    EXPECT_FALSE(IsDay(wrong)) << wrong;
  }
}

// Reproducible reports are of an old day. What has expired stays so.
TEST(Suppressions, TodayIsNotThatOfTheSourceDate) {
  unsetenv("CUAUDIT_TODAY");
  setenv("SOURCE_DATE_EPOCH", "1262304000", 1);
  EXPECT_TRUE(IsDay(Today()));
  EXPECT_GT(Today(), "2010-01-01");
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_TRUE(CheckToday().ok());
  setenv("CUAUDIT_TODAY", "2026-02-30", 1);
  EXPECT_EQ(CheckToday().message(), "CUAUDIT_TODAY: '2026-02-30': expected a day such as 2026-11-26");
  EXPECT_EQ(Suppressions::Read("/nowhere").status().message(), CheckToday().message());
  setenv("CUAUDIT_TODAY", kToday, 1);
  EXPECT_TRUE(CheckToday().ok());
  EXPECT_EQ(Today(), kToday);
}

TEST(Suppressions, HoldForTwoYearsAtMost) {
  const auto until = [](const std::string& day) { return Expected(Entry("rule = 'leak'", "reason = 'r'\nowner = 'o'\nuntil = " + day)); };
  EXPECT_EQ(LastDay(kToday), "2028-11-26");
  EXPECT_EQ(until("2028-11-26"), "");
  EXPECT_EQ(until("2028-11-27"), "s.toml:5:9: until: found 2028-11-27, expected a day at most two years ahead, up to 2028-11-26");
  EXPECT_EQ(until("'2099-12-31'"), "s.toml:5:9: until: found 2099-12-31, expected a day at most two years ahead, up to 2028-11-26");
}

TEST(Suppressions, OfAReportExpireWhenItIsRead) {
  report::Run run = {.mode = report::Mode::Run, .outcome = report::Outcome::Clean};
  run.defects.emplace_back().suppressed = {"r", "o", "2026-11-26", false, "s.toml:1"};
  ExpireSuppressed("2026-11-26", &run);
  EXPECT_FALSE(run.defects[0].suppressed->expired);
  EXPECT_EQ(run.outcome, report::Outcome::Clean);
  ExpireSuppressed("2026-11-27", &run);
  EXPECT_TRUE(run.defects[0].suppressed->expired);
  EXPECT_EQ(run.outcome, report::Outcome::Findings);
  run.defects[0].suppressed->expired = false;
  run.outcome = report::Outcome::NotExercised;
  ExpireSuppressed("2026-11-27", &run);
  EXPECT_EQ(run.outcome, report::Outcome::Findings) << "as an audit of that day would say";
}

class AppendedEntry : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/suppressions_" + std::to_string(getpid()) + ".toml";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string Text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string path_;
};

TEST_F(AppendedEntry, IsReadBackWhateverItsBytes) {
  Suppressions::Entry entry;
  entry.fingerprint = "v2-0000000000000001";
  entry.reason = "a \"reason\" \\ with\nlines and \x01";
  entry.owner = "ann";
  entry.until = "2027-03-31";
  ASSERT_TRUE(AppendEntry(path_, entry, "leak: 1 stream\n[[evil]]").ok());
  entry.fingerprint = "v2-0000000000000002";
  ASSERT_TRUE(AppendEntry(path_, entry, "").ok());
  const Result<Suppressions> read = Suppressions::Read(path_);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->entries().size(), 2U);
  EXPECT_EQ(read->entries()[0].reason, entry.reason);
  EXPECT_EQ(read->entries()[1].fingerprint, "v2-0000000000000002");
  EXPECT_TRUE(Text().starts_with("# leak: 1 stream [[evil]]\n[[suppression]]\nfingerprint = \"v2-0000000000000001\"\n")) << Text();
}

TEST_F(AppendedEntry, AFingerprintHasOneEntry) {
  Suppressions::Entry entry;
  entry.fingerprint = "v2-0000000000000001";
  entry.reason = entry.owner = "x";
  entry.until = "2027-03-31";
  ASSERT_TRUE(AppendEntry(path_, entry, "").ok());
  const std::string before = Text();
  entry.until = "2027-05-31";
  const Status again = AppendEntry(path_, entry, "");
  EXPECT_EQ(again.exit(), Exit::Usage);
  EXPECT_EQ(again.message(), path_ + ":1: there is an entry for v2-0000000000000001 already, until 2027-03-31: change that one");
  EXPECT_EQ(Text(), before);
}

TEST_F(AppendedEntry, AWrongFileStaysAsItIs) {
  std::ofstream(path_) << "[[suppression]]\nrule = 'leak'\n";
  Suppressions::Entry entry;
  entry.fingerprint = "v2-0000000000000001";
  entry.reason = entry.owner = "x";
  entry.until = "2027-03-31";
  EXPECT_EQ(AppendEntry(path_, entry, "").exit(), Exit::Usage);
  EXPECT_EQ(Text(), "[[suppression]]\nrule = 'leak'\n");
}

}  // namespace
}  // namespace cuaudit::harness::suppressions_test
