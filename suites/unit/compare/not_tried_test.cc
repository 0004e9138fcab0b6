// SPDX-License-Identifier: MIT
// What is gone of a base, and was not looked for at every place where it may be: not run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "suites/unit/compare/small_audits.h"

namespace cuaudit::harness::not_tried_test {
namespace {

using namespace small_audits;  // NOLINT(google-build-using-namespace)

const std::string kWay = "cuEventCreate=OUT_OF_MEMORY,refuse in open_device";

// Places are counted by function: one that was not tried may be that of the base.
TEST(Fixed, APlaceThatWasNotTriedMayBeTheOne) {
  const auto missed = [](const std::string& function, report::Reason why, const std::string& call = "cuEventCreate") {
    report::NotReached row = {.call = call, .code = "OUT_OF_MEMORY", .how = "refuse", .why = why};
    if (why == report::Reason::None) row.missed = report::Missed::Unfired;
    if (!function.empty()) row.stack = {{"libc.so.6", "call_it", "", 0, 1}, At(function, 77), At("main", 5)};
    return row;
  };
  const auto head = [](const report::NotReached& row, const std::string& tried = "open_device") {
    report::Run run = Sweep({}, {Tried(tried)});
    run.coverage->not_reached = {row};
    return AuditOf({run});
  };
  using report::Reason;
  const std::string some = kWay + " was not made to fail at each place: ";
  const Audit before = AuditOf({Sweep({Leak()}, {Tried("other", "cuMemAlloc")})});
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, head(missed("open_device", Reason::BeyondLimit))), some + "--limit");
    EXPECT_EQ(Fate(base, head(missed("open_device", Reason::OverBudget))), some + "--budget");
    EXPECT_EQ(Fate(base, head(missed("open_device", Reason::None))), some + "the program did not make the call again");
    EXPECT_EQ(Fate(base, head(missed("", Reason::BeyondLimit))), some + "--limit") << "nobody knows where that is";
    EXPECT_EQ(Fate(base, head(missed("other", Reason::BeyondLimit))), "fixed") << "in another function";
    EXPECT_EQ(Fate(base, head(missed("open_device", Reason::BeyondLimit, "cuMemAlloc"))), "fixed") << "another call";
    report::NotReached back = missed("open_device", Reason::BeyondLimit);
    back.unwinding = true;
    EXPECT_EQ(Fate(base, head(back)), "fixed") << "one fault shows it";
  }
  const Base alone = BaseOf(AuditOf({Sweep({Leak()})}));
  EXPECT_EQ(Fate(alone, head(missed("device_open", Reason::BeyondLimit), "device_open")), some + "--limit") << "renamed";
  EXPECT_EQ(Fate(alone, head(missed("unlike", Reason::BeyondLimit), "device_open")), some + "--limit") << "either is new";
}

// What neither release could try hides nothing that the base has shown.
TEST(Fixed, APlaceThatTheBaseDidNotTryEitherIsNotTheOne) {
  using report::Reason;
  const auto with = [](report::Run run, const std::vector<Reason>& reasons) {
    for (const Reason why : reasons) {
      report::NotReached& row = run.coverage->not_reached.emplace_back();
      row.call = "cuEventCreate";
      row.code = "OUT_OF_MEMORY";
      row.how = "refuse";
      row.why = why;
      row.stack = {At("open_device", 70 + static_cast<int>(run.coverage->not_reached.size())), At("main", 5)};
    }
    return AuditOf({run});
  };
  const auto right = [](std::uint64_t places) {
    report::Run run = Sweep({}, {Tried("open_device")});
    run.coverage->tried[0].places = places;
    return run;
  };
  const Audit before = with(Sweep({Leak()}), {Reason::Unsure});
  const std::string refused = kWay + " was not made to fail at each place: ";
  EXPECT_EQ(Fate(BaseOf(before), with(right(1), {Reason::Unsure})), "fixed");
  EXPECT_THAT(Fate(FileOf(before), with(right(1), {Reason::Unsure})), testing::StartsWith(refused)) << "a file has no such rows";
  EXPECT_THAT(Fate(BaseOf(before), with(right(1), {Reason::Unsure, Reason::Unsure})), testing::StartsWith(refused)) << "one more";
  EXPECT_THAT(Fate(BaseOf(before), with(right(1), {Reason::NoError})), testing::StartsWith(refused)) << "another reason";
  report::Run two = Sweep({Leak()});
  two.coverage->tried[0].places = 2;
  const Base more = BaseOf(with(two, {Reason::Unsure}));
  EXPECT_THAT(Fate(more, with(right(1), {Reason::Unsure})), testing::StartsWith(refused)) << "fewer places";
  EXPECT_EQ(Fate(more, with(right(2), {Reason::Unsure})), "fixed");
  const Base limited = BaseOf(with(Sweep({Leak()}), {Reason::BeyondLimit}));
  EXPECT_EQ(Fate(limited, with(right(1), {Reason::BeyondLimit})), refused + "--limit") << "it may have been another place";
}

// The base's program returns and forgets something. The new one calls exit() there, and what is left at an exit is not judged.
TEST(Fixed, AProgramThatGivesUpShowsNoLoss) {
  const auto head = [](report::Verdict verdict, const std::string& function) {
    report::Run run = Sweep({}, {Tried("open_device"), Tried("other")});
    report::Sequence& sequence = run.sequence.emplace();
    sequence.places = {{"cuEventCreate", At(function, 101)}, {"cuStreamCreate", At("open_device", 10)}};
    sequence.calls = {{0, "", 0}};
    report::TriedCall& trial = sequence.trials.emplace_back();
    trial.call = 0;
    trial.faults = {"cuEventCreate#1=OUT_OF_MEMORY,refuse"};
    trial.verdict = verdict;
    run.findings.emplace_back().rule = report::Rule::Swallowed;  // something else, so that the report has findings
    run.outcome = report::Outcome::Findings;
    FindDefects(&run);
    run.message.abandoned = report::Part{1, 2};
    return run;
  };
  using report::Verdict;
  const std::string gave_up = kWay + " makes the program exit at once, and nobody looked at its heap (--host)";
  const report::Run abandons = head(Verdict::AbandonedAtExit, "open_device");
  const Audit before = AuditOf({Sweep({Leak()})});
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Fate(base, AuditOf({abandons})), gave_up);
    EXPECT_EQ(Fate(base, AuditOf({head(Verdict::Pass, "open_device")})), "fixed") << "this trial did not";
    EXPECT_EQ(Fate(base, AuditOf({head(Verdict::AbandonedAtExit, "other")})), "fixed") << "another one did";
    report::Run looked_at = abandons;
    looked_at.message.abandoned.reset();
    EXPECT_EQ(Fate(base, AuditOf({looked_at})), "fixed") << "the heap shows that it unwound nothing";
    report::Run long_one = head(Verdict::Pass, "open_device");
    long_one.sequence->more_trials = 9;
    EXPECT_EQ(Fate(base, AuditOf({long_one})), gave_up) << "one of those that are not listed may have";
  }
  for (const report::Rule rule :
       {report::Rule::ContextStack, report::Rule::ContextNotRestored, report::Rule::CaptureLeftActive, report::Rule::SettingNotRestored}) {
    report::Run changed = Sweep({Leak()});
    changed.findings[0].rule = rule;
    FindDefects(&changed);
    EXPECT_EQ(Fate(BaseOf(AuditOf({changed})), AuditOf({abandons})), gave_up) << "nor what was left changed";
  }
  report::Run swallowed = Sweep({Leak()});
  swallowed.findings[0].rule = report::Rule::Swallowed;
  FindDefects(&swallowed);
  report::Run exits = abandons;
  exits.findings.clear();
  exits.defects.clear();
  EXPECT_EQ(Fate(BaseOf(AuditOf({swallowed})), AuditOf({exits})), "fixed") << "to exit is to report the failure";
}

TEST(Compare, ACaseWithAnotherNameIsSaidToLookLikeTheOldOne) {
  const auto warnings = [](const Base& base, Audit head) {
    CompareWith(base, &head);
    std::string text;
    for (const std::string& one : head.comparison->warnings) text += one + "\n";
    return text;
  };
  const auto audit = [](const std::string& name, const std::string& program, const Leak& leak = {}) {
    Audit one = AuditOf({Sweep({leak})}, name);
    one.cases[0].runs[0].command = {program, "2"};
    return one;
  };
  const std::string renamed = "new: old of the base is gone and looks like this case: if it was renamed, write the baseline anew\n";
  const Audit before = audit("old", "/a/player");
  EXPECT_EQ(warnings(BaseOf(before), audit("new", "/b/player")), renamed);
  EXPECT_EQ(warnings(BaseOf(before), audit("new", "/b/recorder")), "") << "another command";
  EXPECT_EQ(warnings(FileOf(before), audit("new", "/b/recorder")), renamed) << "the same fingerprint; a baseline file knows no command";
  EXPECT_EQ(warnings(FileOf(before), audit("new", "/b/player", {"close_device"})), "");
  EXPECT_EQ(warnings(BaseOf(before), audit("old", "/b/player")), "");
  Audit both = audit("old", "/a/player");
  both.cases.push_back(audit("new", "/a/player").cases[0]);
  EXPECT_EQ(warnings(BaseOf(before), both), "") << "the old one is still there";
}

TEST(Fixed, AReplayOfAHostFaultIsKnownByItsNameAndPlace) {
  report::Run run = Replay({Leak()}, "malloc#1=host_oom", "malloc", "open_device");
  run.findings[0].fault->call = "malloc";
  run.findings[0].fault->how = "host_oom";
  FindDefects(&run);
  const auto fate = [base = BaseOf(AuditOf({run}))](const std::string& text, std::optional<std::uint32_t> at) {
    report::Run now = Replay({}, text, "malloc", "open_device");
    now.sequence->trials[0].call.reset();  // no call of the driver was hit
    now.sequence->trials[0].at = at;
    return Fate(base, AuditOf({now}));
  };
  EXPECT_EQ(fate("malloc#4=host_oom", 0), "fixed");
  for (const std::optional<std::uint32_t> at : {std::optional<std::uint32_t>(1), {}}) EXPECT_NE(fate("malloc#4=host_oom", at), "fixed");
  EXPECT_NE(fate("pthread_create#1=EAGAIN", 0), "fixed");
}

}  // namespace
}  // namespace cuaudit::harness::not_tried_test
