// SPDX-License-Identifier: MIT
// The rows of words: every id leads back to its own enumerator, and every row says something.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "faults/driver/misuse.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::testing::tables_test {
namespace {

using harness::Because;
using harness::Isolation;
using harness::Missed;
using harness::Reason;
using harness::Rule;
using harness::Verdict;

template <typename E>
void IdsLeadBack() {
  for (std::size_t i = 0; i < RowsOf(E{}).size(); ++i) {
    const auto value = static_cast<E>(i);
    EXPECT_EQ(harness::Named<E>(harness::Name(value)), value) << harness::Name(value);
  }
  EXPECT_EQ(harness::Named<E>("no such name"), std::nullopt);
}

TEST(Tables, EveryIdLeadsBack) {
  IdsLeadBack<Rule>();
  IdsLeadBack<Verdict>();
  IdsLeadBack<Missed>();
  IdsLeadBack<Reason>();
  IdsLeadBack<Isolation>();
  IdsLeadBack<words::Outcome>();
  EXPECT_EQ(harness::Name(Verdict::ReleaseRefused), "release_refused");
  EXPECT_EQ(harness::Name(Missed::NoSpace), "no_space");
}

// What the other call of a violation is: of a release the place does not tell one violation from another, and it came before the use.
TEST(Tables, WhatTheOtherCallOfEachRuleIs) {
  for (std::size_t i = 0; i < harness::kRuleCount; ++i) {
    const auto rule = static_cast<Rule>(i);
    const bool twice = rule == Rule::DoubleRelease || rule == Rule::UseAfterRelease;
    EXPECT_EQ(words::OtherCallOf(rule).tells_apart, !twice && rule != Rule::Deficit && rule != Rule::Orphaned) << harness::Name(rule);
    EXPECT_EQ(words::OtherCallOf(rule).released, twice || rule == Rule::DestroyedUnderUser || rule == Rule::UsedAfterFree)
        << harness::Name(rule);
  }
}

// A new rule is in one of these lists, or it says by a driver call or a note that it is in none.
TEST(Tables, WhatIsWrongUnderEachRule) {
  using harness::RuleSort;
  const std::map<RuleSort, std::set<Rule>> expected = {
      {RuleSort::Lost, {Rule::Leak, Rule::Orphaned}},
      {RuleSort::Kept, {Rule::Growth, Rule::LeftAtExit}},
      {RuleSort::Entry, {Rule::ContextStack}},
      {RuleSort::Changed, {Rule::ContextNotRestored, Rule::CaptureLeftActive, Rule::SettingNotRestored}},
      {RuleSort::Program,
       {Rule::MutexFreed, Rule::MutexLocked, Rule::Crash, Rule::Abort, Rule::Hang, Rule::NotRecovered, Rule::Swallowed, Rule::Spurious,
        Rule::WrongCode, Rule::OutputWritten, Rule::BenignFailed, Rule::BenignNeverFired, Rule::HandedOutTwice}},
  };
  std::map<RuleSort, std::set<Rule>> sorts;
  for (std::size_t i = 0; i < harness::kRuleCount; ++i) {
    const auto rule = static_cast<Rule>(i);
    const RuleSort sort = harness::SortOf(rule);
    if (sort != RuleSort::None && sort != RuleSort::Call) sorts[sort].insert(rule);
    EXPECT_EQ(harness::IsLoss(rule), sort == RuleSort::Lost || sort == RuleSort::Kept) << harness::Name(rule);
    EXPECT_EQ(harness::IsUnsettled(rule), sort == RuleSort::Entry || sort == RuleSort::Changed) << harness::Name(rule);
    EXPECT_EQ(harness::WithoutItsContext(rule), rule == Rule::Orphaned ? Rule::Leak : rule) << harness::Name(rule);
  }
  EXPECT_EQ(sorts, expected);
}

TEST(Tables, EveryRowSaysWhatToDo) {
  for (const harness::RuleRow& row : harness::kRules) EXPECT_FALSE(row.advice.empty()) << row.name;
  for (const harness::VerdictRow& row : harness::kVerdicts) EXPECT_FALSE(row.advice.empty()) << row.name;
  for (const harness::MissedRow& row : harness::kMissed) EXPECT_FALSE(row.advice.empty()) << row.name;
  for (const harness::ReasonRow& row : harness::kReasons) EXPECT_FALSE(row.advice.empty()) << row.name;
  for (const words::OutcomeRow& row : words::kOutcomes) EXPECT_FALSE(row.explanation.empty() || row.advice.empty()) << row.name;
}

TEST(Tables, WhatVariesInAReasonHasAName) {
  for (const harness::ReasonRow& row : harness::kReasons) EXPECT_EQ(row.text.find("{}") == row.text.npos, row.of.empty()) << row.name;
}

TEST(Tables, EveryRowHasWords) {
  for (const harness::RuleRow& row : harness::kRules) EXPECT_FALSE(row.title.empty()) << row.name;
  for (const harness::VerdictRow& row : harness::kVerdicts) EXPECT_FALSE(row.title.empty() || row.explanation.empty()) << row.name;
  for (const harness::MissedRow& row : harness::kMissed) EXPECT_FALSE(row.note.empty() || row.coverage.empty()) << row.name;
  for (const harness::ReasonRow& row : harness::kReasons) EXPECT_FALSE(row.text.empty()) << row.name;
}

TEST(Tables, ARuleSaysWhatItsEntryAmountsTo) {
  EXPECT_EQ(harness::VerdictOf(Rule::Orphaned), Verdict::Leak);
  EXPECT_EQ(harness::VerdictOf(Rule::WrongCode), Verdict::Misreported);
  EXPECT_EQ(harness::VerdictOf(Rule::UnorderedAccess), Verdict::Misuse);
  for (const Rule rule : {Rule::ProcessLifetime, Rule::KeptByLibrary, Rule::HostLeft}) EXPECT_EQ(harness::VerdictOf(rule), std::nullopt);
}

TEST(Tables, OneOfTwoVerdictsIsGraver) {
  for (std::size_t i = 0; i < harness::kVerdictCount; ++i) {
    const auto one = static_cast<Verdict>(i);
    EXPECT_EQ(words::Graver(one, Verdict::Pass), one);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(harness::Row(one).grave, harness::kVerdicts[j].grave) << harness::Name(one);
  }
  EXPECT_EQ(words::Graver(Verdict::Leak, Verdict::Misuse), Verdict::Misuse);
}

TEST(Tables, RulesSayWhatTheyMean) {
  for (const harness::RuleRow& row : harness::kRules) EXPECT_FALSE(row.explanation.empty()) << row.name;
}

TEST(Tables, CountsOfOneReasonAddUpInWords) {
  harness::TallyInWords words = {{"calls that answered NOT_SUPPORTED: the simulated driver does not model them", 1}};
  const harness::Tally tally = {{Reason::Unmodelled, 2}, {Reason::NoError, 3}};
  harness::Count(tally, &words);
  EXPECT_EQ(words, (harness::TallyInWords{{"calls that answered NOT_SUPPORTED: the simulated driver does not model them", 3},
                                          {"calls not made to fail: no error of them is documented", 3}}));
  harness::Counted counted = {{{Reason::Unmodelled}, 1}};
  harness::Count(tally, &counted);
  EXPECT_EQ(counted, (harness::Counted{{{Reason::Unmodelled}, 3}, {{Reason::NoError}, 3}}));
}

TEST(Tables, WordsOfAReasonHoldWhatVaries) {
  EXPECT_EQ(Words(Because{Reason::HostFault, "an allocation"}), "an allocation is refused");
  EXPECT_EQ(Words(Because{Reason::ForkTimer}), "the program has a timer there");
  EXPECT_EQ(Words(Because{}), "");
  EXPECT_EQ(Words(harness::Fallback{{Reason::NoCycles}, {Reason::ForkDied}}), "the program marks no cycles; a fork died, tried again");
}

}  // namespace
}  // namespace cuaudit::testing::tables_test
