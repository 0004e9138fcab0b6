// SPDX-License-Identifier: MIT
// lifecycle_options_test.cc: what `cuaudit sweep` can do for a program, its options do for a lifecycle: from the code, or in
// CUAUDIT_SWEEP. What pruning leaves out (defects that hang on data which is in no call stack and in no ledger), and what is said of faults
// that were not tried.
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cuaudit/gtest.h"
#include "suites/lifecycle/findings.h"

namespace cuaudit::testing::lifecycle_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LifecycleOptions : public ::testing::Test {
 protected:
  LifecycleOptions() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cuaudit_options.XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);  // the background of a shell, and nohup, ignore some
  }
  ~LifecycleOptions() override {
    unsetenv("CUAUDIT_SWEEP");
    std::filesystem::remove_all(folder_);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

 private:
  std::string folder_;
};

int inits = 0;

// Loses its stream when the event cannot be made.
struct LosesAStream {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUresult Init(DriverRef driver) {
    ++inits;
    const CUresult code = driver.StreamCreate(&stream, 0);
    return code == CUDA_SUCCESS ? driver.EventCreate(&event, 0) : code;
  }
  CUresult Teardown(DriverRef driver) {
    const CUresult one = driver.EventDestroy(event);
    const CUresult two = driver.StreamDestroy(stream);
    return one == CUDA_SUCCESS ? two : one;
  }
};

Lifecycle Losing() { return Lifecycle::Of<LosesAStream>("loses_a_stream").WithCurrentContext(); }

TEST_F(LifecycleOptions, TheEnvironmentGoesBeforeTheCode) {
  EXPECT_EQ(Sweep(Losing(), {.depth = 2}).trials, 6U);
  setenv("CUAUDIT_SWEEP", "--depth 1 --call cuEventCreate", 1);
  EXPECT_EQ(Sweep(Losing(), {.depth = 2}).trials, 1U);
  setenv("CUAUDIT_SWEEP", "--depth 1 --codes all --call cuEventCreate", 1);
  EXPECT_GT(Sweep(Losing()).trials, 1U);
}

TEST_F(LifecycleOptions, AWrongOptionIsOneClearLine) {
  setenv("CUAUDIT_SWEEP", "--dept 1", 1);
  const Audit audit = Sweep(Losing());
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_THAT(audit.message, HasSubstr("CUAUDIT_SWEEP: "));
  EXPECT_THAT(audit.message, HasSubstr("--dept"));
  unsetenv("CUAUDIT_SWEEP");
  EXPECT_THAT(Sweep(Losing(), {.formats = {"json"}}).message, HasSubstr("--format: 'json': expected json=FILE"));
  EXPECT_THAT(Sweep(Losing(), {.formats = {"json=" + Path("none/report.json")}}).message, HasSubstr("no such directory"));
  EXPECT_THAT(Sweep(Losing(), {.coverage_at_least = "all"}).message, HasSubstr("--coverage-at-least: 'all': expected a percentage"));
}

TEST_F(LifecycleOptions, TheEnvironmentOverridesPruning) {
  const SweepOptions all = {.prune = Prune::None};
  setenv("CUAUDIT_SWEEP", "--prune all --no-prune", 1);
  EXPECT_THAT(Sweep(Losing(), all).message, HasSubstr("expected --prune or --no-prune, not both"));
  setenv("CUAUDIT_SWEEP", "--prune all", 1);
  const Audit pruned = Sweep(Losing(), all);
  unsetenv("CUAUDIT_SWEEP");
  EXPECT_EQ(Sweep(Losing(), {.prune = Prune::All}).trials, pruned.trials);
  EXPECT_LE(pruned.trials, Sweep(Losing(), all).trials);
  setenv("CUAUDIT_SWEEP", "--format 'json=x", 1);
  EXPECT_THAT(Sweep(Losing()).message, HasSubstr("expected each quote to be closed"));
}

TEST_F(LifecycleOptions, ADeadlineOfZeroIsTheDefault) {
  setenv("CUAUDIT_SWEEP", "--deadline-ms 0 --depth 1", 1);
  EXPECT_EQ(Sweep(Losing(), {.isolate = true}).verdicts.count("hang"), 0U);
}

TEST_F(LifecycleOptions, TwoReportsHaveTwoFiles) {
  const std::string file = Path("both");
  EXPECT_THAT(Sweep(Losing(), {.formats = {"json=" + file, "junit=" + file}}).message, HasSubstr("--format: two results for "));
  const auto named = Lifecycle::Of<LosesAStream>("Suite/Name").WithCurrentContext();
  EXPECT_EQ(Sweep(named, {.formats = {"text=" + Path("{case}.txt")}}).outcome, AuditOutcome::Findings);
  EXPECT_FALSE(Content("Suite%2FName.txt").empty());
}

TEST_F(LifecycleOptions, EachTrialIsALineWhenAsked) {
  setenv("CUAUDIT_SWEEP", ("--trials '" + Path("{case}.ndjson") + "'").c_str(), 1);
  const Audit audit = Sweep(Losing());
  std::istringstream lines(Content("loses_a_stream.ndjson"));
  std::string header;
  ASSERT_TRUE(std::getline(lines, header));
  EXPECT_THAT(header, HasSubstr("{\"schema\":\"cuaudit.trials/1\","));
  std::size_t rows = 0, losses = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    if (line.find("\"differs\":[{\"rule\":\"leak\",\"kind\":\"stream\",\"count\":1,\"bytes\":0}]") != std::string::npos) ++losses;
    EXPECT_EQ(line.find("\"exit\""), std::string::npos) << "a trial in this process has no exit status";
  }
  EXPECT_EQ(rows, audit.trials);
  EXPECT_GE(losses, 1U);
  setenv("CUAUDIT_SWEEP", ("--trials '" + Path("none/trials") + "'").c_str(), 1);
  EXPECT_THAT(Sweep(Losing()).message, HasSubstr("no such directory"));
  setenv("CUAUDIT_SWEEP", "--trials /dev/full", 1);
  const Audit full = Sweep(Losing(), {.formats = {"json=" + Path("full.json")}});
  EXPECT_THAT(full.message, HasSubstr("--trials: /dev/full: cannot write"));
  EXPECT_THAT(Content("full.json"), HasSubstr("\"outcome\": \"findings\"")) << "the report is whole all the same";
}

TEST_F(LifecycleOptions, AReportIsWrittenInEachFormat) {
  const Audit audit =
      Sweep(Losing(), {.formats = {"json=" + Path("{case}.json"), "junit=" + Path("{case}.xml"), "text=" + Path("report.txt")}});
  EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
  const std::string json = Content("loses_a_stream.json");
  EXPECT_THAT(json, HasSubstr("\"cuaudit.report/1\""));
  EXPECT_THAT(json, HasSubstr("\"outcome\": \"findings\""));
  EXPECT_THAT(json, HasSubstr("CUAUDIT_CASE=loses_a_stream CUAUDIT_FAULT='cuEventCreate#1=OUT_OF_MEMORY,refuse'"));
  EXPECT_THAT(Content("loses_a_stream.xml"), HasSubstr("<testsuite"));
  EXPECT_THAT(Content("report.txt"), HasSubstr("stream"));
}

TEST_F(LifecycleOptions, AReplayReportsItsFaultInOneFormHoweverItWasWritten) {
  (void)Replay(Losing(), {"cuEventCreate#1=OUT_OF_MEMORY"}, {.formats = {"json=" + Path("replay.json")}});
  EXPECT_THAT(Content("replay.json"), HasSubstr("\"faults\": [\n    {\n      \"text\": \"cuEventCreate#1=OUT_OF_MEMORY,refuse\",\n"));
}

TEST_F(LifecycleOptions, AReportSaysWhereItsTrialsRan) {
  constexpr AuditedDriver kDriver = AuditedDriver::Simulated;  // a genuine one does not survive fork
  (void)Sweep(Losing(), {.depth = 1, .driver = kDriver, .formats = {"json=" + Path("here.json")}});
  EXPECT_THAT(Content("here.json"), HasSubstr("\"isolation\": {\n      \"in_process\": 4\n"));
  (void)Sweep(Losing(), {.depth = 1, .isolate = true, .driver = kDriver, .formats = {"json=" + Path("forked.json")}});
  EXPECT_THAT(Content("forked.json"), HasSubstr("\"isolation\": {\n      \"fork\": 4\n"));
}

TEST_F(LifecycleOptions, AReportThatProvesNothingSaysWhy) {
  int runs = 0;
  const Lifecycle drifting = Drifting(&runs);
  const Audit audit = Sweep(drifting, {.formats = {"json=" + Path("drifts.json")}});
  EXPECT_EQ(audit.outcome, AuditOutcome::NotExercised) << audit.Text();
  EXPECT_THAT(Content("drifts.json"), HasSubstr("\"message\": \"not exercised: " + audit.message));
}

TEST_F(LifecycleOptions, TheReportOfAReplayNamesItsFaults) {
  const std::string fault = "cuStreamCreate#1=OUT_OF_MEMORY,refuse";
  EXPECT_REPLAYS_CLEANLY(Losing(), fault, {.formats = {"json=" + Path("replay.json")}});
  EXPECT_THAT(Content("replay.json"), HasSubstr("\"mode\": \"replay\""));
  EXPECT_THAT(Content("replay.json"), HasSubstr("\"text\": \"" + fault + "\""));
  EXPECT_NONFATAL_FAILURE(EXPECT_REPLAYS_CLEANLY(Losing(), {"cuEventCreate#1=OUT_OF_MEMORY,refuse"}), "leak: 1 stream");
}

TEST_F(LifecycleOptions, ASweepGoesOnInItsWorkDirectory) {
  inits = 0;
  const SweepOptions options = {.work_dir = Path("work")};
  const Audit first = Sweep(Losing(), options);
  const int of_the_first = inits;
  inits = 0;
  const Audit second = Sweep(Losing(), options);
  EXPECT_EQ(inits, 4) << "two fault-free runs of two cycles";
  EXPECT_GT(of_the_first, inits);
  EXPECT_EQ(first.Text(), second.Text());
  EXPECT_THAT(Texts(second), ElementsAre("leak stream 1 after cuEventCreate#1=OUT_OF_MEMORY,refuse"));
  EXPECT_THAT(Sweep(Losing(), {.depth = 1, .work_dir = Path("work")}).message, HasSubstr("holds the plan of another sweep"));
  EXPECT_THAT(Sweep(Losing(), {.host = false, .work_dir = Path("work")}).message, HasSubstr("holds the plan of another sweep"))
      << "what was not looked at must not count as looked at";
}

TEST_F(LifecycleOptions, TooLittleCoverageIsNotExercised) {
  const auto clean = Lifecycle("an_event").WithCurrentContext().Init([](DriverRef driver) {
    CUevent event = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    return code == CUDA_SUCCESS ? driver.EventDestroy(event) : code;
  });
  const Audit whole = Sweep(clean, {.coverage_at_least = "100"});
  EXPECT_EQ(whole.outcome, AuditOutcome::Clean) << whole.Text();
  EXPECT_EQ(whole.reached, whole.reachable);
  EXPECT_GT(whole.reached, 0U);
  const Audit part = Sweep(clean, {.limit = 1, .coverage_at_least = "100"});
  EXPECT_EQ(part.outcome, AuditOutcome::NotExercised) << part.Text();
  EXPECT_THAT(part.message, HasSubstr("wanted at least 100.0 %"));
  EXPECT_REPLAYS_CLEANLY(clean, "cuEventCreate#1=OUT_OF_MEMORY,refuse", {.coverage_at_least = "100"}) << "one trial has no coverage";
}

// Losing(), and a signal to the process while its third trial runs. Two cycles of two fault-free runs come first.
Lifecycle Signalled(int number, bool hangs = false) {
  inits = 0;
  return Lifecycle("signalled").WithCurrentContext().Init([=](DriverRef driver) {
    CUevent event = nullptr;
    CUstream stream = nullptr;
    const CUresult code = driver.EventCreate(&event, 0);
    if (code != CUDA_SUCCESS) return code;
    const CUresult lost = driver.StreamCreate(&stream, 0);
    if (lost == CUDA_SUCCESS) (void)driver.EventDestroy(event);
    if (lost != CUDA_SUCCESS && hangs) {
      kill(getppid(), number);
      for (;;) pause();
    }
    if (lost != CUDA_SUCCESS) raise(number);
    return lost == CUDA_SUCCESS ? driver.StreamDestroy(stream) : lost;
  });
}

TEST_F(LifecycleOptions, ASignalLeavesTheReportOfTheTrialsSoFar) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  ::testing::GTEST_FLAG(death_test_style) = "fast";
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string file = Path("cut" + std::to_string(number) + ".json");
    EXPECT_EXIT((void)Sweep(Signalled(number), {.depth = 1, .formats = {"json=" + file}}), ::testing::KilledBySignal(number), "");
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_THAT(text.str(), HasSubstr("\"outcome\": \"interrupted\""));
    EXPECT_THAT(text.str(), HasSubstr("\"message\": \"interrupted, 1 of 4 trials (SIG" + std::string(sigabbrev_np(number)) + ")\""));
  }
}

TEST_F(LifecycleOptions, ASignalEndsAnIsolatedTrialThatHangs) {
  constexpr AuditedDriver kDriver = AuditedDriver::Simulated;
  const SweepOptions options = {.depth = 1, .isolate = true, .driver = kDriver, .formats = {"json=" + Path("hung.json")}};
  EXPECT_EXIT((void)Sweep(Signalled(SIGTERM, true), options), ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_THAT(Content("hung.json"), HasSubstr("interrupted, 1 of 4 trials (SIGTERM)"));
}

TEST_F(LifecycleOptions, AProgramsOwnHandlerGetsTheSignalAfterTheReport) {
  struct sigaction before = {};
  struct sigaction own = {};
  static volatile sig_atomic_t heard = 0;
  own.sa_handler = [](int number) { heard = number; };
  sigaction(SIGTERM, &own, &before);
  const Audit audit = Sweep(Signalled(SIGTERM), {.depth = 1, .formats = {"json=" + Path("own.json")}});
  EXPECT_EQ(heard, SIGTERM);
  EXPECT_EQ(audit.outcome, AuditOutcome::Error);
  EXPECT_EQ(audit.message, "interrupted, 1 of 4 trials (SIGTERM)");
  EXPECT_THAT(Content("own.json"), HasSubstr("\"outcome\": \"interrupted\""));
  sigaction(SIGTERM, &before, nullptr);
}

TEST_F(LifecycleOptions, WithoutAReportASignalEndsTheProcessAtOnce) {
  CUAUDIT_SKIP_ON_GENUINE_DRIVER("it does not survive fork");
  EXPECT_EXIT(
      {
        (void)Sweep(Signalled(SIGTERM), {.depth = 1});
        _exit(0);
      },
      ::testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(
      {
        signal(SIGTERM, SIG_IGN);
        const Audit audit = Sweep(Signalled(SIGTERM), {.depth = 1, .formats = {"json=" + Path("ignored.json")}});
        _exit(audit.outcome == AuditOutcome::Findings ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// In C its name is the same for every compiler.
extern "C" [[gnu::noinline]] CUresult make_optional(const DriverRef* driver, CUevent* event) { return driver->EventCreate(event, 0); }

TEST_F(LifecycleOptions, ACallBelowAFunctionIsBenign) {
  const auto lifecycle = [](const char* declared) {
    return Lifecycle("an_optional_event")
        .WithCurrentContext()
        .Init([](DriverRef driver) {
          CUevent event = nullptr;
          if (make_optional(&driver, &event) != CUDA_SUCCESS) return CUDA_SUCCESS;
          return driver.EventDestroy(event);
        })
        .Benign(declared);
  };
  const Audit absorbed = Sweep(lifecycle("cuEventCreate@make_optional"));
  EXPECT_TRUE(absorbed.clean()) << absorbed.Text();
  EXPECT_EQ(absorbed.verdicts.at("benign"), 1U);
  EXPECT_EQ(Sweep(lifecycle("cuEventCreate@somewhere_else")).outcome, AuditOutcome::Findings);
}

using ::testing::IsEmpty;
using ::testing::Not;

// An event and a stream, twice from one line. Where the second turn is careless its error path loses the event.
[[gnu::noinline]] CUresult Turn(DriverRef driver, bool careless) {
  CUevent event = nullptr;
  CUstream stream = nullptr;
  CUresult code = driver.EventCreate(&event, 0);
  if (code != CUDA_SUCCESS) return code;
  code = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  if (code == CUDA_SUCCESS) code = driver.StreamDestroy(stream);
  if (code != CUDA_SUCCESS && careless) return code;
  const CUresult back = driver.EventDestroy(event);
  return code == CUDA_SUCCESS ? back : code;
}

Lifecycle TwoTurns(bool careless) {
  return Lifecycle("two_turns").WithCurrentContext().Init([careless](DriverRef driver) {
    CUresult code = CUDA_SUCCESS;
    volatile int turns = 2;
    for (int i = 0; i < turns && code == CUDA_SUCCESS; ++i) code = Turn(driver, careless && i == 1);
    return code;
  });
}

TEST(Prune, FirstFaultsInEqualStatesAreAllTried) {
  const Audit audit = Sweep(TwoTurns(true), {.depth = 1});
  EXPECT_EQ(audit.outcome, AuditOutcome::Findings) << audit.Text();
  EXPECT_EQ(audit.trials, audit.calls);
  EXPECT_THAT(audit.pruned, IsEmpty());
  const Audit careful = Sweep(TwoTurns(false), {.depth = 1});
  EXPECT_EQ(careful.outcome, AuditOutcome::Clean) << careful.Text();
  EXPECT_THAT(careful.message, Not(HasSubstr("pruned")));
}

TEST(Prune, WhatIsPrunedIsSaid) {
  const Audit audit = Sweep(TwoTurns(true), {.depth = 1, .prune = Prune::All});
  EXPECT_EQ(audit.outcome, AuditOutcome::Clean) << audit.Text();
  EXPECT_LT(audit.trials, audit.calls);
  EXPECT_THAT(audit.message, HasSubstr("4 pruned as equal (SweepOptions::prune = Prune::None tries them)"));
  EXPECT_THAT(audit.Text(), HasSubstr("pruned as equal"));
}

// Forty turns of a stream, three events and work; one place gives all back. On the way back the events are lost when the stream's release
// is refused and, with `late`, the turn is one of the last twenty.
Lifecycle ManyTurns(bool careless, bool late) {
  struct Held {
    CUstream stream = nullptr;
    CUevent event[3] = {};
  };
  static Held held;
  return Lifecycle("many_turns").WithCurrentContext().Init([careless, late](DriverRef driver) {
    held = Held();
    CUresult code = driver.StreamCreate(&held.stream, CU_STREAM_NON_BLOCKING);
    if (code != CUDA_SUCCESS) return code;
    for (CUevent& event : held.event) {
      if (code == CUDA_SUCCESS) code = driver.EventCreate(&event, 0);
    }
    volatile int turns = 40;
    int turn = 0;
    for (; turn < turns && code == CUDA_SUCCESS; ++turn) {
      code = driver.EventRecord(held.event[0], held.stream);
      if (code == CUDA_SUCCESS) code = driver.StreamSynchronize(held.stream);
    }
    const bool failed = code != CUDA_SUCCESS;
    const CUresult back = held.stream == nullptr ? CUDA_SUCCESS : driver.StreamDestroy(held.stream);
    if (failed && back != CUDA_SUCCESS && careless && (!late || turn > 20)) return code;
    for (const CUevent event : held.event) {
      const CUresult one = event == nullptr ? CUDA_SUCCESS : driver.EventDestroy(event);
      if (code == CUDA_SUCCESS) code = one;
    }
    return code == CUDA_SUCCESS ? back : code;
  });
}

TEST(Prune, EqualUnwindingsStandForEachOther) {
  const Audit sound = Sweep(ManyTurns(false, false));
  EXPECT_EQ(sound.outcome, AuditOutcome::Clean) << sound.Text();
  EXPECT_THAT(sound.message, HasSubstr("pruned as equal"));
  EXPECT_THAT(sound.Text(), HasSubstr("same step of an unwinding"));
  const Audit all = Sweep(ManyTurns(true, false), {.prune = Prune::None});
  const Audit pruned = Sweep(ManyTurns(true, false));
  EXPECT_EQ(pruned.outcome, AuditOutcome::Findings) << pruned.Text();
  EXPECT_EQ(pruned.defects.size(), all.defects.size());
  EXPECT_LT(pruned.trials, all.trials / 2);
}

TEST(Prune, AnUnwindingThatOnlyLooksEqualIsNoticed) {
  const Audit sound = Sweep(ManyTurns(false, false));
  const Audit late = Sweep(ManyTurns(true, true));
  EXPECT_EQ(late.outcome, AuditOutcome::Findings) << late.Text();
  EXPECT_GT(late.trials, sound.trials);
}

}  // namespace
}  // namespace cuaudit::testing::lifecycle_options_test
