// SPDX-License-Identifier: MIT
// Three releases of one program: a base, a regression and its repair, compared, accepted and kept as a baseline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::e2e::releases_test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Json = nlohmann::json;

class Releases : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new std::string(TemporaryDirectory());
    setenv("CUAUDIT_TODAY", "2030-06-01", 1);
    for (const char* const release : {"base", "regression", "repaired"}) {
      std::filesystem::create_directory(File(release));
      std::filesystem::copy_file(Program("releases"), ProgramOf(release));
      Sweep(release, {});
    }
  }
  static void TearDownTestSuite() {
    unsetenv("CUAUDIT_TODAY");
    delete directory_;
  }

  static std::string File(const std::string& name) { return *directory_ + "/" + name; }
  static std::string ProgramOf(const std::string& release) { return File(release) + "/releases"; }
  static std::string Report(const std::string& release) { return File(release + ".json"); }
  static CommandResult Sweep(const std::string& release, std::vector<std::string> options) {
    options.insert(options.begin(), {Tool(), "sweep", "--driver=sim"});
    if (options.size() == 3) options.push_back("--format=json=" + Report(release));
    options.insert(options.end(), {"--", ProgramOf(release)});
    return RunCommand(options);
  }
  static CommandResult Run(std::vector<std::string> arguments, const How& how = {}) {
    arguments.insert(arguments.begin(), Tool());
    return RunCommand(arguments, how);
  }
  // The numbers of a comparison, as "new 1, unchanged 1".
  static std::string Counts(const std::string& base, const std::string& head, int exit, std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"compare", base, head, "--format=json=" + File("comparison.json")});
    const CommandResult outcome = Run(options);
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    const Json json = Json::parse(ReadFile(File("comparison.json")));
    std::string text;
    for (const auto& [name, count] : json["counts"].items()) {
      if (count != 0) text += (text.empty() ? "" : ", ") + name + " " + count.dump();
    }
    return text;
  }
  static std::string Fingerprint(const std::string& release, const std::string& function) {
    const Json report = Json::parse(ReadFile(Report(release)));
    for (const Json& defect : report["defects"]) {
      if (defect["blame"]["function"]["function"] == function) return defect["fingerprint"];
    }
    return "no defect of " + function;
  }

  static std::string* directory_;
};
std::string* Releases::directory_ = nullptr;

TEST_F(Releases, ARegressionIsNewAndItsRepairIsFixed) {
  const CommandResult regression = Run({"compare", Report("base"), Report("regression")});
  EXPECT_EQ(regression.exit, 1) << regression.err;
  EXPECT_THAT(regression.out, StartsWith("cuaudit compare: 1 new, 0 changed, 0 not run, 0 fixed, 1 unchanged\n"));
  EXPECT_THAT(regression.out, HasSubstr("  1. new orphaned: 1 stream (sweep)\n"));
  EXPECT_THAT(regression.out, HasSubstr("open_encoder returned without cuStreamDestroy\n"));
  EXPECT_THAT(regression.out, HasSubstr(" replay --driver=sim --fault "));
  EXPECT_THAT(regression.out, Not(HasSubstr("open_decoder"))) << "what was there before is only counted";
  const CommandResult repaired = Run({"compare", Report("regression"), Report("repaired")});
  EXPECT_EQ(repaired.exit, 0) << repaired.out;
  EXPECT_THAT(repaired.out, StartsWith("cuaudit compare: 0 new, 0 changed, 0 not run, 2 fixed, 0 unchanged\n"));
}

TEST_F(Releases, TheExitStatusIsThePolicy) {
  EXPECT_EQ(Run({"compare", Report("base"), Report("regression"), "--fail-on=changed,not-run"}).exit, 0);
  EXPECT_EQ(Run({"compare", Report("base"), Report("regression"), "--fail-on=none"}).exit, 0);
  EXPECT_EQ(Run({"compare", Report("base"), Report("base"), "--fail-on=unchanged"}).exit, 1);
  EXPECT_EQ(Run({"compare", Report("base"), Report("base")}).exit, 0);
  const CommandResult wrong = Run({"compare", Report("base"), Report("base"), "--fail-on=newer"});
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_EQ(wrong.err, "cuaudit: --fail-on: 'newer': expected new, changed, not-run, fixed or unchanged, with commas between, or none\n");
}

TEST_F(Releases, AnotherArgumentOrFaultMakesNothingFixed) {
  const std::string other = File("other.json");
  ASSERT_EQ(Run({"sweep", "--driver=sim", "--format=json=" + other, "--", ProgramOf("regression"), "repaired"}).exit, 0);
  EXPECT_EQ(Counts(Report("regression"), other, 1), "not_run 2");
  EXPECT_THAT(Run({"compare", Report("regression"), other}).out, HasSubstr("\n  warning  sweep: the command is another one: "));

  const auto replay = [&](const std::string& release, const std::string& fault, const std::string& file) {
    return Run({"replay", "--driver=sim", "--fault", fault, "--format=json=" + File(file), "--", ProgramOf(release)}).exit;
  };
  ASSERT_EQ(replay("regression", "cuMemAlloc#1=OUT_OF_MEMORY,refuse", "lost.json"), 1);
  ASSERT_EQ(replay("repaired", "cuMemAlloc#1=OUT_OF_MEMORY,refuse", "mended.json"), 0);
  ASSERT_EQ(replay("repaired", "cuEventCreate#1=OUT_OF_MEMORY,refuse", "beside.json"), 0);
  EXPECT_EQ(Counts(File("lost.json"), File("mended.json"), 0), "fixed 1");
  EXPECT_EQ(Counts(File("lost.json"), File("beside.json"), 1), "not_run 1");
}

TEST_F(Releases, ASettingThatShowsMoreIsInTheReport) {
  const auto strict = [](const std::string& release) {
    return Sweep(release, {"--abandoned-is-leak", "--format=json=" + File("strict." + release + ".json")}).exit;
  };
  ASSERT_EQ(strict("regression"), 1);
  ASSERT_EQ(strict("repaired"), 0);
  EXPECT_EQ(Json::parse(ReadFile(File("strict.regression.json")))["settings"], Json::parse(R"(["--abandoned-is-leak"])"));
  EXPECT_EQ(Counts(File("strict.regression.json"), File("strict.repaired.json"), 0), "fixed 2");
  EXPECT_EQ(Counts(File("strict.regression.json"), Report("repaired"), 1), "not_run 2");
}

TEST_F(Releases, AFilterMakesNothingFixed) {
  ASSERT_EQ(Sweep("repaired", {"--call=cuMemAlloc", "--format=json=" + File("filtered.json")}).exit, 0);
  EXPECT_EQ(Counts(Report("base"), File("filtered.json"), 1), "not_run 1");
  const Json gone = Json::parse(ReadFile(File("comparison.json")))["gone"][0];
  EXPECT_EQ(gone["because"], "cuEventCreate=OUT_OF_MEMORY,refuse in open_decoder was not made to fail");
}

TEST_F(Releases, AReportThatVanishesFailsThePolicyWhetherItHasDefectsOrNot) {
  ASSERT_EQ(Run({"run", "--driver=sim", "--format=json=" + File("run.json"), "--", ProgramOf("repaired")}).exit, 0);
  ASSERT_EQ(Run({"baseline", "write", Report("repaired"), File("clean.txt")}).exit, 0);
  for (const std::string& base : {Report("repaired"), File("clean.txt")}) {
    EXPECT_EQ(Counts(base, File("run.json"), 1), "not_proved 1, not_run 1");
    EXPECT_EQ(Run({"compare", base, File("run.json"), "--fail-on=new,changed"}).exit, 0);
    EXPECT_THAT(Run({"compare", base, File("run.json")}).out, HasSubstr("not run:\n  sweep: the case has no sweep\n"));
  }
}

TEST_F(Releases, ABaselineOfAnOlderVersionIsReadAndSaidToBeOne) {
  WriteFile(File("old.txt"), "cuaudit baseline 1\n");
  const CommandResult old = Run({"compare", File("old.txt"), Report("repaired")});
  EXPECT_EQ(old.exit, 0);
  EXPECT_THAT(old.err, StartsWith("cuaudit: warning: " + File("old.txt") + ": the baseline names no report, "));
  EXPECT_EQ(Run({"baseline", "show", File("old.txt")}).out, "0 defects\n");
}

// The ways back are made to fail, too, but not after every first fault.
TEST_F(Releases, ALimitMakesNoDefectOfTwoFaultsFixed) {
  const auto sweep = [](const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(), {Tool(), "sweep", "--driver=sim", "--format=json=" + File(name)});
    options.insert(options.end(), {"--", Program("reports"), "twice"});
    return RunCommand(options).exit;
  };
  ASSERT_EQ(sweep("twice.json", {"--depth=2"}), 1);
  (void)sweep("limited.json", {"--depth=2", "--limit=27"});
  (void)sweep("shallow.json", {"--depth=1"});
  for (const char* const head : {"limited.json", "shallow.json"}) {
    (void)Run({"compare", File("twice.json"), File(head), "--format=json=" + File("comparison.json")});
    const Json gone = Json::parse(ReadFile(File("comparison.json")))["gone"];
    EXPECT_FALSE(gone.empty()) << head;
    for (const Json& one : gone) EXPECT_EQ(one["change"], "not_run") << head << ": " << one;
    const bool limited = std::string(head) == "limited.json";
    EXPECT_EQ(gone[0]["because"].get<std::string>().starts_with("it needs 2 faults in one trial"), limited)
        << "another first fault was tried";
  }
}

TEST_F(Releases, ABaselineFileIsABase) {
  const std::string file = File("baseline.txt");
  ASSERT_EQ(Run({"baseline", "write", Report("base"), file}).exit, 0);
  EXPECT_EQ(Run({"baseline", "write", Report("base")}).out, ReadFile(file));
  EXPECT_EQ(Counts(file, Report("regression"), 1), "new 1, unchanged 1");
  EXPECT_EQ(Counts(file, Report("repaired"), 0), "fixed 1");
  const CommandResult shown = Run({"baseline", "show", file});
  EXPECT_EQ(shown.exit, 0);
  EXPECT_THAT(shown.out, StartsWith("1 defect, 1 report\n  sweep: orphaned: 1 stream, acquired by cuStreamCreate < open_decoder;"));
}

TEST_F(Releases, ABaselineIsOfAResultThatProvesSomething) {
  ASSERT_EQ(Sweep("base", {"--coverage-at-least=100", "--call=cuMemAlloc", "--limit=0", "--format=json=" + File("unproved.json")}).exit, 3);
  const std::string file = File("unproved.txt");
  const CommandResult refused = Run({"baseline", "write", File("unproved.json"), file});
  EXPECT_EQ(refused.exit, 3);
  EXPECT_THAT(refused.err, AllOf(StartsWith("cuaudit: " + File("unproved.json") + ": not exercised"),
                                 EndsWith(": the baseline would lack its defects (--allow-unproved)\n")));
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  EXPECT_FALSE(std::ifstream(file).good());
  EXPECT_EQ(Run({"baseline", "write", "--allow-unproved", File("unproved.json"), file}).exit, 0);
  EXPECT_EQ(ReadFile(file), "cuaudit baseline 2\n");
}

TEST_F(Releases, WhatIsAcceptedDoesNotCountUntilItExpires) {
  const std::string file = File("suppressions.toml");
  const std::string fingerprint = Fingerprint("regression", "open_encoder");
  const std::vector<std::string> accept = {
      "suppress",           fingerprint,      "--report", Report("regression"), "--reason=waits for 13.1", "--owner=ann",
      "--until=2031-01-31", "--suppressions", file};
  const CommandResult accepted = Run(accept);
  ASSERT_EQ(accepted.exit, 0) << accepted.err;
  EXPECT_THAT(ReadFile(file), StartsWith("# orphaned: 1 stream, acquired by cuStreamCreate < open_encoder;"));
  EXPECT_EQ(Counts(Report("base"), Report("regression"), 0, {"--suppressions", file}), "suppressed 1, unchanged 1");

  std::ofstream(file, std::ios::app)
      << "\n[[suppression]]\nblamed = \"open_decoder\"\nreason = \"old\"\nowner = \"ann\"\nuntil = 2031-01-31\n";
  const CommandResult clean = Sweep("regression", {"--suppressions", file});
  EXPECT_EQ(clean.exit, 0) << clean.out;
  EXPECT_THAT(clean.out, StartsWith("cuaudit sweep on the simulated driver: clean; 2 defects suppressed\n"));
  EXPECT_THAT(clean.out, HasSubstr("suppressed until 2031-01-31 by ann: waits for 13.1 (" + file + ":2)"));
  const CommandResult junit = Sweep("regression", {"--suppressions", file, "--format=junit"});
  EXPECT_THAT(junit.out,
              AllOf(HasSubstr(" failures=\"0\" errors=\"0\" "), HasSubstr("<skipped message=\"suppressed until 2031-01-31 by ann: old ")));
  ASSERT_EQ(Sweep("regression", {"--suppressions", file, "--format=json=" + File("accepted.json")}).exit, 0);
  const Json json = Json::parse(ReadFile(File("accepted.json")));
  EXPECT_EQ(json["outcome"], "clean");
  EXPECT_THAT(json["message"].get<std::string>(), EndsWith("; 2 defects suppressed"));
  EXPECT_EQ(json["defects"][0]["suppressed"]["until"], "2031-01-31");

  const CommandResult expired = RunCommand({Tool(), "sweep", "--driver=sim", "--suppressions", file, "--", ProgramOf("regression")},
                                           {.environment = {"CUAUDIT_TODAY=2031-02-01", "SOURCE_DATE_EPOCH=0"}});
  EXPECT_EQ(expired.exit, 1);
  EXPECT_THAT(expired.out, HasSubstr("its suppression expired, accepted until 2031-01-31 by ann: waits for 13.1"));
  // Neither the report that was written before nor a base with the same defects excuses it.
  const CommandResult compared =
      Run({"compare", File("accepted.json"), File("accepted.json")}, {.environment = {"CUAUDIT_TODAY=2031-02-01"}});
  EXPECT_EQ(compared.exit, 1);
  EXPECT_THAT(compared.out,
              StartsWith("cuaudit compare: 0 new, 0 changed, 0 not run, 0 fixed, 2 unchanged, 2 suppressions have expired\n"));
  EXPECT_THAT(compared.out, HasSubstr("     its suppression expired on 2031-01-31: ann, waits for 13.1 (" + file + ":2)\n"));
  EXPECT_EQ(Run({"compare", File("accepted.json"), File("accepted.json")}).exit, 0);
  const CommandResult wrong = Run({"compare", File("accepted.json"), File("accepted.json")}, {.environment = {"CUAUDIT_TODAY=today"}});
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_EQ(wrong.err, "cuaudit: CUAUDIT_TODAY: 'today': expected a day such as 2026-11-26\n");
  // Another file stands in the place of what the report says, for the report as a whole.
  WriteFile(File("other.toml"), "");
  const CommandResult other = Run({"compare", File("accepted.json"), File("accepted.json"), "--suppressions", File("other.toml"),
                                   "--fail-on=none", "--format=markdown"});
  EXPECT_EQ(other.err, "cuaudit: warning: suppressions of the result that do not hold here, because --suppressions " + File("other.toml") +
                           " stands in their place: " + file + ":2, " + file + ":8\n");
  EXPECT_THAT(other.out, AllOf(HasSubstr("2 unchanged"), HasSubstr("| findings |"), Not(HasSubstr("| clean |")))) << other.out;
  const CommandResult twice = Run(accept);
  EXPECT_EQ(twice.exit, 2);
  EXPECT_EQ(twice.err, "cuaudit: " + file + ":2: there is an entry for " + fingerprint + " already, until 2031-01-31: change that one\n");
  const CommandResult unused = Sweep("repaired", {"--suppressions", file});
  EXPECT_EQ(unused.exit, 0);
  EXPECT_THAT(unused.err, HasSubstr("warning: " + file + ":2: the suppression fits no defect\n"));
}

TEST_F(Releases, AWrongFileIsOneLineBeforeAnythingStarts) {
  const std::string file = File("wrong.toml");
  WriteFile(file, "\n[[suppression]]\nrule = \"leak\"\nreason = \"r\"\n");
  const CommandResult sweep = Sweep("base", {"--suppressions", file});
  EXPECT_EQ(sweep.exit, 2);
  EXPECT_EQ(sweep.err, "cuaudit: --suppressions: " + file + ":2:1: expected owner in each suppression\n");
  EXPECT_EQ(sweep.out, "");
  WriteFile(File("cut.json"), ReadFile(Report("base")).substr(0, 300));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"compare", File("cut.json"), Report("base")},
                                                  {"compare", Report("base"), File("cut.json")},
                                                  {"baseline", "write", File("cut.json")}}) {
    const CommandResult cut = Run(command);
    EXPECT_EQ(cut.exit, 2);
    EXPECT_THAT(cut.err, StartsWith("cuaudit: " + File("cut.json") + ": line "));
    EXPECT_EQ(std::count(cut.err.begin(), cut.err.end(), '\n'), 1) << cut.err;
  }
}

TEST_F(Releases, UsageIsToldInOneLine) {
  const std::string report = Report("base");
  EXPECT_THAT(Run({"compare", report}).err, StartsWith("cuaudit: expected a base and a head: cuaudit compare "));
  EXPECT_THAT(Run({"report"}).err, StartsWith("cuaudit: expected a result: cuaudit report "));
  EXPECT_THAT(Run({"baseline", "write", report, "-"}).err,
              StartsWith("cuaudit: -: expected a file; without one the baseline goes to stdout"));
  EXPECT_THAT(Run({"baseline", "read", report}).err, StartsWith("cuaudit: expected write and a result, or show and a file: "));
  EXPECT_THAT(Run({"suppress"}).err, StartsWith("cuaudit: expected a fingerprint: cuaudit suppress "));
  EXPECT_THAT(Run({"suppress", "v2-1", "--reason=r", "--owner=o", "--until=2031-02-30"}).err,
              EndsWith("--until: '2031-02-30': expected a day such as 2027-03-31\n"));
  EXPECT_THAT(Run({"suppress", "v2-1", "--reason=r", "--owner=o", "--until=2032-06-02"}).err,
              EndsWith("--until: '2032-06-02': expected a day at most two years ahead, up to 2032-06-01\n"));
  EXPECT_THAT(Run({"suppress", "v2-1", "--reason=r", "--owner=o", "--until=2031-02-20", "--report", report}).err,
              EndsWith(": expected a defect with the fingerprint 'v2-1'\n"));
}

}  // namespace
}  // namespace cuaudit::e2e::releases_test
