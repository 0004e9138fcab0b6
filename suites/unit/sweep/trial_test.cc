// SPDX-License-Identifier: MIT
// What a trial amounts to, and what was declared benign or as long as the process.
#include "harness/sweep/run/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/ledger/rules.h"
#include "harness/sweep/findings/benign.h"
#include "harness/verdict/evidence/site_keys.h"
#include "suites/support/journal_builder.h"

namespace cuaudit::harness::trial_test {
namespace {

using driver::CallId;
using ::testing::ElementsAre;

const std::vector<std::string> kOne = {"cuMemAlloc#1=OUT_OF_MEMORY,refuse"};

class TrialTest : public ::testing::Test {
 protected:
  TrialTest() {
    rehearsal_.Call(CallId::Init);
    trial_.Call(CallId::Init);
  }
  std::uint64_t Fire(CallId call) {
    faults::Record& record = trial_.Call(call);
    record.fault = 1;
    record.result = CUDA_ERROR_OUT_OF_MEMORY;
    return SiteKey(trial_.Read().journal, SiteOf(record));
  }
  TrialResult Trial(std::uint64_t site, const std::vector<std::string>& faults = kOne, const Ending& ending = {}) {
    return JudgeTrial(0, faults, std::vector<std::uint64_t>{site}, Rehearsed(rehearsal_.Read().evidence()), trial_.Read(ending),
                      JudgeOptions(), &sites_);
  }

  TemporaryDir dir_;
  JournalBuilder rehearsal_{dir_.File("rehearsal")};
  JournalBuilder trial_{dir_.File("trial")};
  SiteTexts sites_;
};

TEST_F(TrialTest, FiredWhereItWasPlanned) {
  const std::uint64_t site = Fire(CallId::MemAlloc_v2);
  for (const std::uint64_t planned : {site, std::uint64_t{0}}) {
    const TrialResult trial = Trial(planned);
    EXPECT_TRUE(trial.fired);
    EXPECT_EQ(trial.missed, Missed::Nothing);
    EXPECT_NE(trial.verdict, Verdict::NotExercised);
  }
}

TEST_F(TrialTest, FaultThatHitAnotherSiteIsNotExercisedButKeepsItsFindings) {
  trial_.Call(CallId::StreamCreate).argument[0] = 0x51;
  const std::uint64_t site = Fire(CallId::MemAlloc_v2);
  trial_.Call(CallId::MemFree_v2).argument[0] = 0x99;  // something is done after the fault, so nothing was merely abandoned
  const TrialResult trial = Trial(site + 1);
  EXPECT_EQ(trial.missed, Missed::Elsewhere);
  EXPECT_FALSE(trial.fired);
  EXPECT_EQ(trial.verdict, Verdict::NotExercised);
  EXPECT_FALSE(trial.findings.empty());
}

TEST_F(TrialTest, OverflowAndFullDiskAreResultsOfTheTrial) {
  Fire(CallId::MemAlloc_v2);
  trial_.header().flags.fetch_or(faults::kRecordsDropped);
  EXPECT_EQ(Trial(0).missed, Missed::Overflow);
  EXPECT_EQ(Trial(0).verdict, Verdict::NotExercised);
  EXPECT_EQ(Trial(0, kOne, {0, 9, true}).verdict, Verdict::Hang) << "it filled the journal on the way";
  trial_.header().flags.fetch_or(faults::kNoSpace);
  EXPECT_EQ(Trial(0).missed, Missed::NoSpace);
}

TEST_F(TrialTest, EveryFaultOfSeveralMustHaveFired) {
  const std::vector<std::string> two = {kOne[0], "cuMemAlloc#9=OUT_OF_MEMORY,refuse"};
  Fire(CallId::MemAlloc_v2);
  trial_.header().fired[0].store(1);
  TrialResult trial = Trial(0, two);
  EXPECT_THAT(trial.unfired, ElementsAre(1U));
  EXPECT_FALSE(trial.fired);
  trial_.header().fired[1].store(1);
  EXPECT_TRUE(Trial(0, two).fired);
}

TEST_F(TrialTest, IsNoPassWhereTheHostWasAskedForAndNotSeen) {
  rehearsal_.Host(faults::HostCall::Looking, 0);
  Fire(CallId::MemAlloc_v2);
  for (const std::uint32_t shown : {std::uint32_t{faults::kHeapLeftOut}, 0U}) {
    rehearsal_.header().flags.store(faults::kHostProbesActive | shown);
    const TrialResult trial = Trial(0);
    EXPECT_EQ(trial.missed, shown != 0 ? Missed::Nothing : Missed::Unseen);
    EXPECT_EQ(trial.fired, shown != 0);
    EXPECT_EQ(trial.verdict == Verdict::NotExercised, shown == 0) << Name(trial.verdict);
    EXPECT_NE(trial.host_left_out, Reason::None) << "counted in any case";
  }
  const TrialResult crash = Trial(0, kOne, {0, 11, false});
  EXPECT_EQ(crash.verdict, Verdict::Crash) << "a finding is one whoever looked";
  trial_.Host(faults::HostCall::Looking, 0);
  EXPECT_EQ(Trial(0).missed, Missed::Nothing);
}

TEST_F(TrialTest, ADeadlineThatComesFirstIsNotTheProgramsChoice) {
  EXPECT_EQ(Trial(0).missed, Missed::Unfired);
  EXPECT_EQ(Trial(0, kOne, {0, 9, true}).missed, Missed::Late);
  EXPECT_EQ(Trial(0, kOne, {0, 9, true}).verdict, Verdict::NotExercised);
}

TEST_F(TrialTest, CrashHasNoKindAndNoObject) {
  Fire(CallId::MemAlloc_v2);
  const TrialResult trial = Trial(0, kOne, {0, 11, false});
  ASSERT_EQ(trial.findings.size(), 1U);
  EXPECT_EQ(trial.findings[0].rule, Rule::Crash);
  EXPECT_EQ(trial.findings[0].kind, driver::Kind::None);
  EXPECT_EQ(trial.findings[0].acquired->call, "");
}

// Another thread leaves its stack shallower than it found it: nothing is held, so whoever made the call is to blame.
TEST_F(TrialTest, WhoPopsTooOftenMadeTheCall) {
  constexpr std::uint64_t kCallers = 0xc;
  const auto call = [](JournalBuilder* journal, CallId id, std::uint32_t tid, std::uint64_t context, std::uint64_t current,
                       std::uint32_t stack) -> faults::Record& {
    journal->StackIn(stack, "/nowhere/program");
    faults::Record& record = journal->Call(id);
    record.tid = tid;
    record.argument[0] = context;
    record.context = current;
    record.stack = stack;
    return record;
  };
  for (JournalBuilder* const journal : {&rehearsal_, &trial_}) {
    const bool wrong = journal == &trial_;
    call(journal, CallId::CtxPushCurrent_v2, 7, 0xa, 0, 1);
    call(journal, CallId::CtxPopCurrent_v2, 7, 0xa, 0xa, 2);
    if (wrong) call(journal, CallId::CtxPopCurrent_v2, 7, 0xd, 0xd, 3);
    call(journal, CallId::CtxSetCurrent, 1, kCallers, 0, 4);
    faults::Record& push = call(journal, CallId::CtxPushCurrent_v2, 1, 0xa, kCallers, 5);
    if (wrong) {
      push.fault = 1;
      push.flags = faults::kInjected;
      push.result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    const std::uint64_t popped = wrong ? kCallers : 0xa;
    call(journal, CallId::CtxPopCurrent_v2, 1, popped, popped, 6);
  }
  const TrialResult trial = Trial(0);
  const auto found = std::find_if(trial.findings.begin(), trial.findings.end(),
                                  [](const TrialFindingText& one) { return one.rule == Rule::ContextStack; });
  ASSERT_NE(found, trial.findings.end());
  ASSERT_TRUE(found->blame.has_value());
  EXPECT_EQ(found->blame->because, report::BlamedBecause::MadeTheCall);
}

// A program tries again what a burst refuses. The second refusal is the one that its function saw while it held the stream.
TEST_F(TrialTest, WhatIsAcquiredWhileAFaultGoesOnIsLostAtItsNextRefusal) {
  const auto call = [this](CallId id, std::uint32_t stack) -> faults::Record& {
    trial_.StackIn(stack, "/nowhere/program");
    faults::Record& record = trial_.Call(id);
    record.stack = stack;
    return record;
  };
  for (const bool before : {true, false}) {
    if (!before) call(CallId::StreamCreate, 3).argument[0] = 0x51;
    faults::Record& refused = call(CallId::EventCreate, before ? 5 : 3);
    refused.fault = 1;
    refused.flags = faults::kInjected;
    refused.result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  call(CallId::EventQuery, 6);
  const TrialResult trial = Trial(0);
  const auto found =
      std::find_if(trial.findings.begin(), trial.findings.end(), [](const TrialFindingText& one) { return one.rule == Rule::Leak; });
  ASSERT_NE(found, trial.findings.end());
  ASSERT_TRUE(found->blame.has_value());
  EXPECT_EQ(found->blame->because, report::BlamedBecause::HeldIt);
}

using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kPool = "cuMemPoolCreate#1=OUT_OF_MEMORY,refuse";

PlaceText At(const std::string& call) {
  report::Acquired site;
  site.call = call;
  return PlaceText(site);
}

TrialFindingText Told(Rule rule, const std::string& call) {
  TrialFindingText text;
  text.rule = rule;
  text.where = At(call);
  return text;
}

// A pool that is declared benign fails, then another call; the caller was told of success.
TrialResult Swallowed() {
  TrialResult trial;
  trial.faults = {kPool, "cuStreamDestroy#1=INVALID_VALUE,refuse"};
  trial.fired = true;
  trial.verdict = Verdict::Misreported;
  trial.said = Said::Success;
  trial.fault_site = At("cuMemPoolCreate");
  trial.later_sites = {At("cuStreamDestroy")};
  trial.findings = {Told(Rule::Swallowed, "cuMemPoolCreate")};
  return trial;
}

std::vector<Benign> Declared() { return {*ParseBenign("cuMemPoolCreate")}; }

TEST(Benign, OfAFindingThatIsDeclaredTheNotesAreLeft) {
  for (const Rule rule : {Rule::ReleaseRefused, Rule::RetainedForRetry, Rule::AbandonedAtExit}) {
    TrialResult trial = Swallowed();
    trial.notes = {Told(Rule::ProcessLifetime, "cuStreamCreate"), Told(rule, "cuStreamCreate")};
    ApplyBenign(Declared(), &trial);
    EXPECT_THAT(trial.findings, IsEmpty());
    EXPECT_EQ(trial.verdict, *VerdictOf(rule));
  }
  TrialResult trial = Swallowed();
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::Absorbed);
  trial = Swallowed();
  trial.said = Said::Failure;
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::Pass);
}

TEST(Benign, WithoutTheFindingThatIsDeclaredAVanishedChildLeavesItUnjudged) {
  TrialResult trial = Swallowed();
  trial.notes = {Told(Rule::ReleaseRefused, "cuStreamCreate"), Told(Rule::Unjudged, "cuStreamCreate")};
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::NotExercised);
  EXPECT_EQ(trial.missed, Missed::Vanished);
  EXPECT_FALSE(trial.fired);
}

TEST(Trial, AmountsToTheGravestOfItsFindings) {
  TrialResult trial = {.verdict = Verdict::Absorbed};
  const auto with = [&](Rule rule) {
    AddFindings({Told(rule, "cuStreamCreate")}, &trial);
    return trial.verdict;
  };
  EXPECT_EQ(with(Rule::LeftAtExit), Verdict::Absorbed);
  EXPECT_EQ(with(Rule::WrongCode), Verdict::Misreported);
  EXPECT_EQ(with(Rule::Leak), Verdict::Leak);
  EXPECT_EQ(with(Rule::Deficit), Verdict::Misuse);
  EXPECT_EQ(with(Rule::Leak), Verdict::Misuse);
  EXPECT_THAT(trial.findings, SizeIs(5));
}

TEST(Benign, WhatIsNotDeclaredStays) {
  TrialResult trial = Swallowed();
  trial.findings[0].where = At("cuStreamDestroy");
  ApplyBenign(Declared(), &trial);
  EXPECT_THAT(trial.findings, SizeIs(1));
  EXPECT_EQ(trial.verdict, Verdict::Misreported);
}

TEST(Benign, ADeclaredFaultAloneIsAbsorbedOrNot) {
  TrialResult trial = Swallowed();
  trial.faults.pop_back();
  trial.later_sites.clear();
  ApplyBenign(Declared(), &trial);
  EXPECT_EQ(trial.verdict, Verdict::Benign);
  trial = Swallowed();
  trial.faults.pop_back();
  trial.later_sites.clear();
  trial.findings.clear();
  trial.said = Said::Failure;
  ApplyBenign(Declared(), &trial);
  ASSERT_THAT(trial.findings, SizeIs(1));
  EXPECT_EQ(trial.findings[0].rule, Rule::BenignFailed);
  EXPECT_EQ(trial.verdict, Verdict::Misreported);
}

TEST(Benign, ACountIsANumberFromOne) {
  EXPECT_EQ(ParseBenign("cuMemPoolCreate")->occurrence, 0U);
  EXPECT_EQ(ParseBenign("cuMemPoolCreate#2@libvideo.so!make_pool")->occurrence, 2U);
  using std::string_view_literals::operator""sv;
  for (const std::string_view count : {""sv, "0"sv, "x"sv, "2x"sv, "-1"sv, "4294967296"sv, "1\0"sv})
    EXPECT_FALSE(ParseBenign("cuMemPoolCreate#" + std::string(count)).ok()) << count;
}

TEST(Benign, ADeclarationThatNoFaultHitIsAFinding) {
  TrialResult trial = Swallowed();
  std::map<std::size_t, TrialResult> results = {{0, trial}};
  EXPECT_THAT(NeverFired(Declared(), results), SizeIs(1));
  ApplyBenign(Declared(), &trial);
  results[0] = trial;
  EXPECT_THAT(NeverFired(Declared(), results), IsEmpty());
}

using report::Rule;
using ::testing::HasSubstr;

report::Finding Left(const char* kind, const char* function, int line, std::uint64_t count = 1) {
  report::Finding finding = {.rule = Rule::LeftAtExit, .kind = kind, .count = count};
  report::Frame frame = {.module = "prog", .function = function, .line = line};
  finding.acquired = {"cuStreamCreate", {frame}};
  return finding;
}

report::Run Of(std::vector<report::Finding> findings) { return {.findings = std::move(findings)}; }

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
  EXPECT_THAT(why("1 stream v1-0123456789abcdef"), HasSubstr("expected the fingerprint"));
  EXPECT_THAT(why("1 stream v2-0123456789abcdef-2"), HasSubstr("expected the fingerprint"));
}

}  // namespace
}  // namespace cuaudit::harness::trial_test
