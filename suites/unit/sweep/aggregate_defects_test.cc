// SPDX-License-Identifier: MIT
// Which findings of many trials come together as one defect, by what their trials know of each other.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/sweep/findings/aggregate.h"

namespace cuaudit::harness::aggregate_defects_test {
namespace {

// A trial with one finding, which the tests change.
TrialResult Shows(std::vector<std::string> faults, std::uint64_t fault_key) {
  TrialResult trial = {.faults = std::move(faults), .fired = true, .fault_key = fault_key};
  TrialFindingText& finding = trial.findings.emplace_back();
  finding.rule = Rule::Leak;
  finding.kind = driver::Kind::Stream;
  finding.count = 1;
  return trial;
}

std::size_t DefectsOf(const std::vector<TrialResult>& trials) {
  const Reproduction reproduction = {"cuaudit replay --driver=sim", "cuaudit run --driver=sim", "prog"};
  std::vector<const TrialResult*> pointers;
  for (const TrialResult& trial : trials) pointers.push_back(&trial);
  report::Run run;
  Groups groups;
  AddTrials(pointers, reproduction, {}, &groups, &run);
  groups.defects.Find(&run);
  return run.defects.size();
}

report::Frame Line(const char* function, int line, std::uint64_t offset = 0) {
  return {"prog", function, "prog.cc", line, offset == 0 ? static_cast<std::uint64_t>(line) : offset};
}

// A trial in which the program aborted in `stack`.
TrialResult Aborts(std::size_t index, std::uint64_t where_key, const std::vector<report::Frame>& stack) {
  TrialResult trial = Shows({"cuEventDestroy#" + std::to_string(index) + "=INVALID_CONTEXT,refuse"}, where_key);
  trial.index = index;
  TrialFindingText& finding = trial.findings[0];
  finding.rule = Rule::Abort;
  finding.kind = driver::Kind::None;
  finding.where_key = where_key;
  finding.where = PlaceText("SIGABRT", stack);
  finding.blame = report::Blame{stack.front(), report::BlamedBecause::MadeTheCall};
  return trial;
}

TEST(AggregateDefects, AFunctionThatAbortsIsOneCauseForTheSameFunctionsAround) {
  const report::Frame must = Line("must", 3);
  EXPECT_EQ(DefectsOf({Aborts(1, 11, {must, Line("main", 9)}), Aborts(2, 12, {must, Line("main", 10)})}), 1U);
  EXPECT_EQ(DefectsOf({Aborts(1, 11, {must, Line("main", 9, 1)}), Aborts(2, 12, {must, Line("main", 9, 2)})}), 1U);
  EXPECT_EQ(DefectsOf({Aborts(1, 11, {must, Line("load", 9)}), Aborts(2, 12, {must, Line("close", 10)})}), 2U)
      << "one of them may be a function that must not throw";
  EXPECT_EQ(DefectsOf({Aborts(1, 11, {Line("main", 9)}), Aborts(2, 12, {Line("main", 10)})}), 2U) << "two assertions";
}

// fini() destroys a mutex that run() still holds, since one of its calls failed.
TEST(AggregateDefects, AFunctionThatLeavesAMutexLockedIsOneCause) {
  const auto locked = [](std::size_t index, const char* failed, int line, const char* destroyer) {
    TrialResult trial = Shows({"cuMemAlloc#" + std::to_string(index) + "=OUT_OF_MEMORY,refuse"}, index);
    trial.index = index;
    trial.fault_site = PlaceText("cuMemAlloc", {Line(failed, line), Line("main", 20)});
    TrialFindingText& finding = trial.findings[0];
    finding.rule = Rule::MutexLocked;
    finding.kind = driver::Kind::Mutex;
    finding.where_key = index;
    finding.where = PlaceText("pthread_mutex_destroy", {Line(destroyer, 3), Line(failed, line + 1), Line("main", 20)});
    finding.blame = report::Blame{Line(destroyer, 1), report::BlamedBecause::MadeTheCall};
    return trial;
  };
  EXPECT_EQ(DefectsOf({locked(1, "run", 5, "fini"), locked(2, "run", 8, "fini")}), 1U);
  EXPECT_EQ(DefectsOf({locked(1, "run", 5, "fini"), locked(2, "load", 8, "fini")}), 2U) << "two functions that do not unlock";
  EXPECT_EQ(DefectsOf({locked(1, "run", 5, "fini"), locked(2, "run", 8, "close")}), 2U);
}

// A graph is made anew when its update fails, and the old one is forgotten: after two failed updates the second one is forgotten, too.
TEST(AggregateDefects, TellsTheSecondTimeOfAMistakeFromAnotherMistake) {
  const auto lost = [](std::vector<std::string> faults, std::uint64_t key, int line, const char* blamed, std::vector<std::uint64_t> later) {
    TrialResult trial = Shows(std::move(faults), 9);
    trial.index = key;
    trial.findings[0].acquired_key = key;
    trial.later_keys = std::move(later);
    trial.later_sites.resize(trial.later_keys.size());
    trial.findings[0].acquired = PlaceText("cuGraphInstantiateWithFlags", {Line("refresh", line)});
    trial.findings[0].blame = report::Blame{Line(blamed, 1), report::BlamedBecause::HeldIt};
    return trial;
  };
  const std::string first = "cuGraphExecUpdate#1=GRAPH_EXEC_UPDATE_FAILURE,refuse";
  const std::string second = "cuGraphExecUpdate#2=GRAPH_EXEC_UPDATE_FAILURE,refuse";
  EXPECT_EQ(DefectsOf({lost({first}, 7, 5, "refresh", {}), lost({first, second}, 8, 8, "run", {9})}), 1U);
  EXPECT_EQ(DefectsOf({lost({first}, 7, 5, "refresh", {}), lost({first, "cuMemFree#1=INVALID_VALUE,refuse"}, 8, 8, "run", {10})}), 2U);
  TrialResult other = lost({first}, 6, 6, "renew", {});
  EXPECT_EQ(DefectsOf({lost({first}, 7, 5, "refresh", {}), other, lost({first, second}, 8, 8, "run", {9})}), 3U)
      << "nobody knows which of two comes again";
  other = lost({first}, 6, 6, "refresh", {});
  other.index = 7;
  EXPECT_EQ(DefectsOf({lost({first}, 7, 5, "refresh", {}), other, lost({first, second}, 8, 8, "run", {9})}), 1U)
      << "two objects of one cause";
}

// run() calls frame() in a loop. A trial in whose n-th turn a call fails.
TEST(AggregateDefects, TellsOneFunctionsLossFromThatOfTheLoopAround) {
  const auto lost = [](std::size_t turn, std::uint64_t count, const char* blamed) {
    TrialResult trial = Shows({"cuMemAlloc#" + std::to_string(turn) + "=OUT_OF_MEMORY,refuse"}, 9);
    trial.index = turn;
    trial.findings[0].acquired_key = 7;
    trial.findings[0].acquired = PlaceText("cuStreamCreate", {Line("frame", 5), Line("run", 8)});
    trial.findings[0].count = count;
    trial.findings[0].blame = report::Blame{Line(blamed, 1), report::BlamedBecause::HeldIt};
    return trial;
  };
  EXPECT_EQ(DefectsOf({lost(1, 1, "frame"), lost(2, 1, "run")}), 1U) << "one loss, of which two functions could be blamed";
  EXPECT_EQ(DefectsOf({lost(1, 1, "frame"), lost(2, 2, "run"), lost(3, 3, "run")}), 2U) << "run loses those of earlier turns";
}

// A module is unloaded too early: it is then used, and unloaded again.
TEST(AggregateDefects, PutsTogetherWhatFollowsOneRelease) {
  const auto trial = [](std::uint64_t first_release, std::uint64_t second_release) {
    TrialResult result = Shows({"cuModuleGetFunction#1=INVALID_CONTEXT,refuse"}, 9);
    result.findings[0].acquired_key = 7;
    result.findings.resize(2, result.findings[0]);
    for (TrialFindingText& finding : result.findings) finding.rule = Rule::UseAfterRelease;
    result.findings[1].rule = Rule::DoubleRelease;
    const char* const functions[] = {"function", "~Cache"};
    for (std::size_t i = 0; i < 2; ++i) {
      TrialFindingText& finding = result.findings[i];
      finding.kind = driver::Kind::Module;
      finding.where_key = 20 + i;
      finding.where = PlaceText("cuModuleGetFunction", {Line(functions[i], 3)});
      finding.other = PlaceText("cuModuleUnload", {Line("function", 20)});
      finding.other_key = i == 0 ? first_release : second_release;
      finding.blame = report::Blame{Line(functions[i], 3), report::BlamedBecause::MadeTheCall};
    }
    return result;
  };
  EXPECT_EQ(DefectsOf({trial(30, 30)}), 1U);
  EXPECT_EQ(DefectsOf({trial(30, 31)}), 2U) << "two objects of one place";
}

// A texture is destroyed while another context is current, or none; a block of the heap is given to the driver. It refuses both, and they
// are lost.
TEST(AggregateDefects, PutsALossTogetherWithItsRefusedRelease) {
  constexpr std::uint64_t kRefused = 30;
  const auto trial = [](Rule wrongly, Rule rule, std::uint64_t declined, std::uint64_t acquired) {
    TrialResult result = Shows({"cuCtxPushCurrent#1=INVALID_CONTEXT,refuse"}, 9);
    result.findings.resize(2, result.findings[0]);
    for (TrialFindingText& finding : result.findings) finding.kind = driver::Kind::TextureObject;
    TrialFindingText& lost = result.findings[0];
    lost.rule = rule;
    lost.acquired_key = acquired;
    (rule == Rule::Orphaned ? lost.other_key : lost.where_key) = declined;
    lost.blame = report::Blame{Line("main", 9), report::BlamedBecause::HeldIt};
    TrialFindingText& wrong = result.findings[1];
    wrong.rule = wrongly;
    wrong.acquired_key = 7;
    wrong.where_key = kRefused;
    wrong.blame = report::Blame{Line("uninit", 3), report::BlamedBecause::MadeTheCall};
    return result;
  };
  for (const Rule lost : {Rule::Leak, Rule::Orphaned}) {
    for (const Rule wrongly : {Rule::WrongContext, Rule::UnknownHandle}) {
      EXPECT_EQ(DefectsOf({trial(wrongly, lost, kRefused, 7)}), 1U);
      EXPECT_EQ(DefectsOf({trial(wrongly, lost, kRefused + 1, 7)}), 2U) << "another release was declined";
      EXPECT_EQ(DefectsOf({trial(wrongly, lost, kRefused, 8)}), 2U) << "another object";
      EXPECT_EQ(DefectsOf({trial(wrongly, lost, 0, 7)}), 2U) << "it was never released";
    }
    EXPECT_EQ(DefectsOf({trial(Rule::Deficit, lost, kRefused, 7)}), 2U) << "that release was not refused";
  }
}

}  // namespace
}  // namespace cuaudit::harness::aggregate_defects_test
