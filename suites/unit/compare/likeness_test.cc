// SPDX-License-Identifier: MIT
// Which defect of one report is which defect of the other.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "harness/compare/similarity.h"
#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::likeness_test {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

KnownDefect Known(const std::string& fingerprint, const std::string& function, const std::vector<std::string>& failing = {"cuMemAlloc"}) {
  KnownDefect defect;
  defect.case_name = "player";
  defect.mode = report::Mode::Sweep;
  defect.fingerprint = fingerprint;
  defect.rule = report::Rule::Leak;
  defect.kinds = {"stream"};
  defect.call = "cuStreamCreate";
  defect.stack = {function, "setup", "main"};
  defect.blame = function;
  for (const std::string& call : failing) defect.failing.push_back({call, "OUT_OF_MEMORY", "refuse", false, function, 1});
  return defect;
}

// Nobody knows which of the functions call the driver.
BothNames NamesOf(const std::vector<KnownDefect>& before, const std::vector<KnownDefect>& after) {
  BothNames names;
  for (const KnownDefect& defect : before) AddNames(defect, &names.before);
  for (const KnownDefect& defect : after) AddNames(defect, &names.after);
  names.before.calling.clear();
  names.after.calling.clear();
  return names;
}

double Alike(const KnownDefect& before, const KnownDefect& after) { return LikenessOf(before, after, NamesOf({before}, {after})); }

TEST(Similarity, EqualIsOneAndRulesAndCallsDecide) {
  const KnownDefect one = Known("a", "open");
  EXPECT_DOUBLE_EQ(Alike(one, one), 1);
  KnownDefect other = one;
  other.rule = report::Rule::DoubleRelease;
  EXPECT_DOUBLE_EQ(Alike(one, other), 0);
  other.rule = report::Rule::Orphaned;
  EXPECT_DOUBLE_EQ(Alike(one, other), 1) << "the same loss";
  other.call = "cuStreamCreateWithPriority";
  EXPECT_DOUBLE_EQ(Alike(one, other), 0);
  other.call = "cuStreamCreate_v2";
  EXPECT_DOUBLE_EQ(Alike(one, other), 1);
}

TEST(Similarity, AFunctionMayBeRenamedMovedOrInlined) {
  const KnownDefect one = Known("a", "open");
  EXPECT_GE(Alike(one, Known("b", "device_open")), kAlike);
  EXPECT_GT(Alike(one, Known("b", "player::Device<ns::Tag>::open")), Alike(one, Known("b", "device_open")));
  KnownDefect inlined = Known("b", "setup");
  inlined.stack = {"setup", "main"};
  EXPECT_GE(Alike(one, inlined), kAlike);
  EXPECT_GE(Alike(inlined, one), kAlike) << "and split again";
}

TEST(Similarity, FunctionsThatBothExistAreTwo) {
  const KnownDefect one = Known("a", "open");
  const KnownDefect other = Known("b", "load");
  BothNames names = NamesOf({one}, {other});
  names.after.all.insert("open");
  EXPECT_LT(LikenessOf(one, other, names), kAlike);
  names = NamesOf({one}, {other});
  names.before.all.insert("load");
  EXPECT_LT(LikenessOf(one, other, names), kAlike);
}

TEST(Similarity, FingerprintsComeFirstAndEachDefectIsPairedOnce) {
  const std::vector<KnownDefect> before = {Known("v2-1", "open"), Known("v2-2", "load")};
  const std::vector<KnownDefect> after = {Known("v2-2", "load"), Known("v2-9", "device_open")};
  EXPECT_EQ(PairDefects(before, after, NamesOf(before, after)), (Pairs{{0, 1}, {1, 0}}));
  const std::vector<KnownDefect> twice = {Known("v2-1", "open"), Known("v2-8", "open2")};
  const std::vector<KnownDefect> renamed = {Known("v2-9", "device_open")};
  EXPECT_EQ(PairDefects(twice, renamed, NamesOf(twice, renamed)).size(), 1U);
}

// When the first of two defects of one function is repaired, the second one gets the number of the first.
TEST(Similarity, ANumberBehindAFingerprintIsNoName) {
  const std::vector<KnownDefect> before = {Known("v2-1", "open", {"cuMemAlloc"}), Known("v2-1-2", "open", {"cuEventCreate"})};
  const std::vector<KnownDefect> after = {Known("v2-1", "open", {"cuEventCreate"})};
  EXPECT_EQ(PairDefects(before, after, NamesOf(before, after)), (Pairs{{1, 0}}));
}

// The same mistake in several functions that acquire by one helper and fail in another: how many there are of it is what counts.

using namespace small_audits;  // NOLINT(google-build-using-namespace)

// A function that opens a stream by open_stream, then fails in helpers, and loses the stream there when it is wrong.
struct Opener {
  std::string name;
  std::vector<std::string> loses_in = {"open_buffer"};  // none: it is right
  std::string blame = {};                               // empty: itself
  std::uint64_t streams = 1;
};

// All of them fail in open_buffer and in open_event. `calling`: each calls the driver itself, too, so that a report always names it.
Audit Opening(const std::vector<Opener>& openers, bool calling = true) {
  report::Run run = Sweep({});
  run.sequence = report::Sequence();
  std::set<std::string> names;
  for (const Opener& one : openers) {
    names.insert(one.name);
    if (calling) run.sequence->places.push_back({"cuStreamDestroy", At(one.name, 60)});
    report::Member member{{}, one.streams, 0};
    for (const std::string& helper : one.loses_in) {
      report::Finding finding;
      finding.rule = report::Rule::Leak;
      finding.kind = "stream";
      finding.count = one.streams;
      finding.acquired = {"cuStreamCreate", {At("open_stream", 3), At(one.name, 20), At("main", 90)}};
      const std::string call = helper == "open_buffer" ? "cuMemAlloc" : "cuEventCreate";
      finding.fault = report::Fault{call, 1, "refuse", "OUT_OF_MEMORY", call, {At(helper, 8), At(one.name, 22), At("main", 90)}};
      member.findings.push_back(run.findings.size());
      run.findings.push_back(finding);
    }
    if (one.loses_in.empty()) continue;
    report::Defect& defect = run.defects.emplace_back();
    defect.members = {member};
    defect.blame = report::Blame{At(one.blame.empty() ? one.name : one.blame, 24), report::BlamedBecause::HeldIt};
    defect.fingerprint = "v2-" + defect.blame->function.function;
  }
  const std::uint64_t places = names.size();
  run.coverage->tried = {{"cuEventCreate", "OUT_OF_MEMORY", "refuse", false, "open_event", places},
                         {"cuMemAlloc", "OUT_OF_MEMORY", "refuse", false, "open_buffer", places},
                         {"cuStreamCreate", "OUT_OF_MEMORY", "refuse", false, "open_stream", places}};
  run.outcome = run.findings.empty() ? report::Outcome::Clean : report::Outcome::Findings;
  return AuditOf({run});
}

const Opener kPlayer{"player_open"};
const Opener kRecorder{"recorder_open"};
const Opener kRightPlayer{"player_open", {}};
const Opener kRightRecorder{"recorder_open", {}};

// "unchanged new; fixed": what is told of the defects of the head, and of those that are gone.
std::string Told(const Base& base, Audit head) {
  CompareWith(base, &head);
  std::string text;
  for (const Change change : ChangesOf(head)) text += (text.empty() ? "" : " ") + std::string(words::Name(change));
  text += ";";
  for (const report::Gone& gone : head.comparison->gone) text += " " + std::string(words::Name(gone.change));
  return text;
}

// By a report and by a baseline file. `calling`: the functions call the driver themselves.
void ExpectTold(const std::vector<Opener>& before, const std::vector<Opener>& after, const std::string& told, bool calling) {
  EXPECT_EQ(Told(BaseOf(Opening(before, calling)), Opening(after, calling)), told) << "a report, calling: " << calling;
  EXPECT_EQ(Told(FileOf(Opening(before, calling)), Opening(after, calling)), told) << "a baseline file, calling: " << calling;
}

void ExpectTold(const std::vector<Opener>& before, const std::vector<Opener>& after, const std::string& told) {
  for (const bool calling : {true, false}) ExpectTold(before, after, told, calling);
}

TEST(Parts, TheSameMistakeInANewFunctionIsNew) {
  ExpectTold({kPlayer}, {kPlayer, kRecorder}, "unchanged new;");
  ExpectTold({kPlayer}, {kPlayer, {"a_open"}, {"b_open"}, {"c_open"}, {"d_open"}, {"e_open"}}, "unchanged new new new new new;");
}

TEST(Parts, OneOfTwoThatIsRepairedIsFixed) {
  ExpectTold({kPlayer, kRecorder}, {kPlayer, kRightRecorder}, "unchanged; fixed");
  ExpectTold({kPlayer, kRecorder}, {kRightPlayer, kRecorder}, "unchanged; fixed");
}

TEST(Parts, AMistakeThatMovesToANeighbourIsFixedAndNew) {
  for (const std::vector<Opener>& before : {std::vector<Opener>{kPlayer, kRightRecorder}, std::vector<Opener>{kPlayer}}) {
    ExpectTold(before, {kRightPlayer, kRecorder}, "new; fixed", true);
    // No report names a right function that makes no call itself. So player_open may as well have become recorder_open.
    ExpectTold(before, {kRightPlayer, kRecorder}, "new; not_run", false);
  }
}

TEST(Parts, ARenamedCallerOfHelpersIsTheSame) {
  ExpectTold({kPlayer}, {kRecorder}, "unchanged;");
  // Others fail in the same helper. So only a report that would name the old function says that it is gone.
  const std::vector<Opener> before = {kPlayer, kRightRecorder};
  const std::vector<Opener> after = {{"open_the_player"}, kRightRecorder};
  EXPECT_EQ(Told(BaseOf(Opening(before)), Opening(after)), "unchanged;");
  EXPECT_EQ(Told(BaseOf(Opening(before, false)), Opening(after, false)), "new; not_run");
  Audit head = Opening(after);
  EXPECT_EQ(Told(FileOf(Opening(before)), head), "new; not_run");
  CompareWith(FileOf(Opening(before)), &head);
  EXPECT_EQ(head.comparison->gone[0].because, "it may be v2-open_the_player of the new report, if player_open is now open_the_player");
  // A repair is one when nothing else could be the old defect.
  ExpectTold({kPlayer, kRightRecorder}, {kRightPlayer, kRightRecorder}, "; fixed");
}

// Some trials of one place blame another function: with the tear-down of a later cycle in sight, say. Nothing else is lost.
TEST(Parts, OnePlaceIsLostOnceWhoeverIsBlamed) {
  const std::vector<Opener> whole = {{"player_open", {"open_buffer", "open_event"}}};
  const auto with_second = [&](const std::vector<std::size_t>& findings, bool of_others) {
    Audit audit = Opening(of_others ? std::vector<Opener>{whole[0], kRecorder} : whole);
    report::Run& run = audit.cases[0].runs[0];
    report::Defect second = run.defects[0];
    second.members[0].findings = findings;
    second.blame = report::Blame{At("open_stream", 4), report::BlamedBecause::BeganRelease};  // in both releases
    second.fingerprint = "v2-ffffffffffffffff";
    run.defects.push_back(second);
    return audit;
  };
  for (const std::vector<std::size_t>& findings : {std::vector<std::size_t>{0}, std::vector<std::size_t>{0, 1}}) {
    const Audit two = with_second(findings, false);
    EXPECT_EQ(Told(BaseOf(Opening(whole)), two), "unchanged unchanged;");
    EXPECT_EQ(Told(FileOf(Opening(whole)), two), "unchanged unchanged;");
    EXPECT_EQ(Told(BaseOf(two), Opening(whole)), "unchanged;");
    EXPECT_EQ(Told(FileOf(two), Opening(whole)), "unchanged;");
  }
  // Of the place of the recorder the player is not blamed.
  EXPECT_EQ(Told(BaseOf(Opening({whole[0], kRecorder})), with_second({0, 2}, true)), "unchanged unchanged new;");
  EXPECT_EQ(Told(BaseOf(with_second({0, 2}, true)), Opening({whole[0], kRecorder})), "unchanged unchanged; fixed");
  // What the other one lost has been repaired, so nothing stands for this one.
  EXPECT_EQ(Told(BaseOf(with_second({0}, false)), Opening({kRightPlayer})), "; fixed fixed");
}

// A fault on the way back from another one is a way of its own, and nobody compares places of those.
TEST(Parts, ANewWayToFailIsNoPartOfADefectThatHasGrown) {
  const std::vector<Opener> once = {{"player_open", {"open_buffer"}}};
  const auto grown = [](bool blames_another) {
    Audit audit = Opening({{"player_open", {"open_buffer", "open_event"}}});
    report::Run& run = audit.cases[0].runs[0];
    report::Finding& second = run.findings[1];
    second.then = {*second.fault};
    second.fault = run.findings[0].fault;
    if (!blames_another) return audit;
    report::Defect defect = run.defects[0];
    defect.members[0].findings = {1};
    defect.blame = report::Blame{At("open_stream", 4), report::BlamedBecause::BeganRelease};
    defect.fingerprint = "v2-ffffffffffffffff";
    run.defects.push_back(defect);
    return audit;
  };
  EXPECT_EQ(Told(BaseOf(Opening(once)), grown(true)), "unchanged new;");
  EXPECT_EQ(Told(FileOf(Opening(once)), grown(true)), "unchanged new;");
  EXPECT_EQ(Told(BaseOf(grown(false)), grown(true)), "unchanged unchanged;") << "the base failed in that way";
}

TEST(Parts, WhatWasRepairedIsNoRoomForAnother) {
  const Opener both{"player_open", {"open_buffer", "open_event"}};
  const Opener one{"player_open", {"open_event"}};
  ExpectTold({both}, {one, kRecorder}, "unchanged new;");
}

// Another function is blamed for some of what one function loses, and no more is lost.
TEST(Parts, PartsTogetherLoseNoMoreThanTheWhole) {
  const std::vector<Opener> whole = {{"player_open", {"open_buffer", "open_event"}}};
  const Opener kept{"player_open", {"open_event"}};
  const Opener part{"player_open", {"open_buffer"}, "release_a"};
  const Opener again{"player_open", {"open_buffer"}, "release_b"};
  const Opener twice{"player_open", {"open_buffer"}, "release_a", 2};
  const auto told = [](const std::vector<Opener>& before, const std::vector<Opener>& after) {
    return Told(BaseOf(Opening(before)), Opening(after));
  };
  EXPECT_EQ(told(whole, {kept, part}), "unchanged unchanged;");
  EXPECT_EQ(told(whole, {kept, part, again}), "unchanged unchanged new;");
  EXPECT_EQ(told(whole, {kept, twice}), "unchanged new;");
  EXPECT_EQ(told(whole, {whole[0], part}), "unchanged new;");
  EXPECT_EQ(told({kept, part}, whole), "changed;");
  EXPECT_EQ(told({kept, part, again}, whole), "changed; fixed");
}

}  // namespace
}  // namespace cuaudit::harness::likeness_test
