// SPDX-License-Identifier: MIT
// What of the base vanished without a defect, what was taken for what, the identifier of a base, and many defects.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reports/comparison_text.h"
#include "reports/defect_words.h"
#include "reports/message.h"
#include "reports/result_guid.h"
#include "suites/unit/compare/small_bases.h"

namespace cuaudit::harness::bases_test {
namespace {

using namespace small_bases;  // NOLINT(google-build-using-namespace)

// What was not run of the base, whether it has defects there or not, in words.
std::string Missing(const Base& base, Audit head) {
  CompareWith(base, &head);
  std::string text;
  for (const report::NotProved& one : head.comparison->not_run) {
    text += one.case_name + ", " + std::string(report::Name(one.mode)) + ": " + one.why + "\n";
  }
  return text;
}

TEST(Compare, ACleanCaseOfTheBaseThatVanishesIsNotRun) {
  Audit before = AuditOf({Sweep({}, {Tried("open_device")})});
  before.cases.push_back(AuditOf({Sweep({Leak()})}, "decoder").cases[0]);
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Missing(base, before), "");
    EXPECT_EQ(Missing(base, AuditOf({Sweep({Leak()})}, "decoder")), "player, sweep: the case is gone\n");
    EXPECT_EQ(Missing(base, Audit()), "decoder, sweep: the case is gone\nplayer, sweep: the case is gone\n");
  }
}

TEST(Compare, ACleanModeOfTheBaseThatVanishesIsNotRun) {
  report::Run cycles;
  cycles.mode = report::Mode::Cycles;
  cycles.outcome = report::Outcome::Clean;
  const Audit before = AuditOf({Sweep({Leak()}), cycles});
  Audit left_out = AuditOf({Sweep({Leak()})});
  left_out.cases[0].not_run = "the budget has no time for its cycles";
  report::Run unexercised = cycles;
  unexercised.outcome = report::Outcome::NotExercised;
  unexercised.message.told = "no driver call";
  for (const Base& base : {BaseOf(before), FileOf(before)}) {
    EXPECT_EQ(Missing(base, AuditOf({Sweep({Leak()})})), "player, cycles: the case has no cycles\n");
    EXPECT_EQ(Missing(base, AuditOf({Sweep({Leak()})}, "")), ", cycles: the case has no cycles\n") << "the only case";
    // The head itself says so of these; each is said once.
    for (Audit head : {left_out, AuditOf({Sweep({Leak()}), unexercised})}) {
      EXPECT_EQ(Missing(base, head), "");
      CompareWith(base, &head);
      EXPECT_EQ(report::NothingProved(head).size(), 1U);
    }
  }
  EXPECT_EQ(Missing(BaseOf(AuditOf({Sweep({Leak()}), unexercised})), AuditOf({Sweep({Leak()})})), "")
      << "what proved nothing before is no loss";
}

TEST(Compare, ABaselineOfVersionOneHasNoRuns) {
  Baseline known = BaselineOf(AuditOf({Sweep({Leak()})}));
  known.runs.clear();
  std::string text = BaselineText(known);
  text.replace(0, text.find('\n'), "cuaudit baseline 1");
  const Result<Baseline> old = ParseBaseline(text, "base.txt");
  ASSERT_TRUE(old.ok()) << old.status().message();
  EXPECT_EQ(Missing({"base.txt", old->defects, old->runs, {}}, Audit()), "");
  EXPECT_EQ(Fate({"base.txt", old->defects, old->runs, {}}, Audit()), "the case is gone");
}

TEST(Compare, EachWayToTakeADefectForAnotherHasItsReason) {
  const auto why = [](const Leak& before, Leak after) {
    Audit head = AuditOf({Sweep({after})});
    CompareWith(BaseOf(AuditOf({Sweep({before})})), &head);
    const std::vector<report::TakenFor>& taken = head.cases[0].runs[0].defects[0].taken_for;
    return taken.size() == 1 ? std::string(words::Name(taken[0].why)) + " " + taken[0].function : std::to_string(taken.size());
  };
  Leak moved;
  moved.function = "player::Device<int>::open_device";
  EXPECT_EQ(why(Leak(), moved), "moved open_device");
  Leak inlined;
  inlined.function = "main";
  inlined.caller = "_start";
  EXPECT_EQ(why({"open_device", "stream", {"cuEventCreate"}, "main", "cuStreamCreate"}, inlined), "inlined open_device");
}

// Whoever compares by a SARIF file finds the same base, whether it was a result or the baseline file of it.
TEST(Compare, ABaseHasOneIdentifierHoweverItIsKept) {
  const Audit before = AuditOf({Sweep({Leak()})});
  Audit head = before;
  CompareWith(BaseOf(before), &head);
  const std::string guid = head.comparison->base_guid;
  EXPECT_EQ(guid, report::GuidOf(report::ResultKeysOf(before)));
  CompareWith(FileOf(before), &head);
  EXPECT_EQ(head.comparison->base_guid, guid);
  CompareWith(BaseOf(AuditOf({Sweep({})})), &head);
  EXPECT_NE(head.comparison->base_guid, guid);
}

// Every function is renamed, so that every defect may be every other one, and a second time none is left.
TEST(Compare, TenThousandDefectsOnEitherSideAreCompared) {
  constexpr int kCount = 10000;
  const auto many = [](const std::string& prefix) {
    std::vector<Leak> leaks;
    for (int i = 0; i < kCount; ++i) {
      const std::string number = std::to_string(i);
      leaks.push_back({prefix + number, "stream", {"cuEventCreate"}, "caller" + number, "cuStreamCreate"});
    }
    report::Run run = Sweep(leaks);
    run.defects.clear();  // all are of one trial there
    for (std::size_t i = 0; i < run.findings.size(); ++i) {
      report::Defect& defect = run.defects.emplace_back();
      defect.members = {{{i}, 1, 0}};
      defect.blame = report::Blame{run.findings[i].acquired.stack[0], report::BlamedBecause::HeldIt};
      defect.fingerprint = "v2-" + prefix + std::to_string(i) + "x";
    }
    return AuditOf({run});
  };
  const Audit before = many("open_");
  Audit head = many("create_");
  CompareWith(BaseOf(before), &head);
  const std::vector<report::Defect>& defects = head.cases[0].runs[0].defects;
  ASSERT_EQ(defects.size(), static_cast<std::size_t>(kCount));
  for (const report::Defect& defect : defects) {
    ASSERT_EQ(defect.change, Change::Unchanged);
    const std::string is = defect.blame->function.function;
    ASSERT_EQ(defect.taken_for.at(0).function, "open_" + is.substr(is.find('_') + 1));
  }
  EXPECT_TRUE(head.comparison->gone.empty());
  Audit repaired = AuditOf({Sweep({}, before.cases[0].runs[0].coverage->tried)});
  CompareWith(BaseOf(before), &repaired);
  EXPECT_EQ(repaired.comparison->gone.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(repaired.comparison->gone.back().change, Change::Fixed);
}

}  // namespace
}  // namespace cuaudit::harness::bases_test
