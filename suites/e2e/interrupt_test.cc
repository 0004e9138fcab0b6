// SPDX-License-Identifier: MIT
// Ctrl-C, SIGTERM and SIGHUP: what runs is ended, a valid report says how far the command had come, and its exit status is 128 and the
// signal.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "suites/support/tool.h"

namespace cuaudit::e2e::interrupt_test {
namespace {

using ::testing::HasSubstr;

// A place where a run of a shell script can wait for ever, and be waited for.
class Blocking {
 public:
  Blocking() { EXPECT_EQ(RunCommand({"mkfifo", fifo_}).exit, 0); }
  const std::string& place() const { return place_; }
  std::string Script() const { return "{ echo $$ > " + fifo_ + "; exec sleep 1000; }"; }
  // The number of the process that has come to the script.
  pid_t Wait() const { return static_cast<pid_t>(std::stol("0" + ReadFile(fifo_))); }

 private:
  std::string place_ = TemporaryDirectory();
  std::string fifo_ = place_ + "/fifo";
};

// Each process that a command starts has its journal in the work directory.
bool AnyRunsIn(const std::string& work) {
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
    if (ReadFile(process.path() / "environ").find("journal=" + work + "/") != std::string::npos) return true;
  }
  return false;
}

// False where nobody can say: the schema needs python3-jsonschema.
bool ExpectValid(const std::string& report) {
  constexpr const char* kCheck =
      "import json, sys, jsonschema\njsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))";
  const CommandResult outcome = RunCommand({"/usr/bin/python3", "-c", kCheck, report, CUAUDIT_SCHEMA});
  if (outcome.err.find("No module named 'jsonschema'") != std::string::npos) return false;
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return true;
}

class Interrupt : public ::testing::TestWithParam<const char*> {};

TEST_P(Interrupt, EndsWhatRunsAndTakesItsFilesWithIt) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Blocking blocking;
    Spawned command({Tool(), GetParam(), "--driver=sim", "--", "/bin/sh", "-c", blocking.Script()},
                    {.environment = {"TMPDIR=" + blocking.place()}});
    const pid_t run = blocking.Wait();
    ASSERT_GT(run, 0);
    command.Kill(number);
    const CommandResult outcome = command.Wait();
    EXPECT_EQ(outcome.exit, 128 + number) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("cuaudit ") + GetParam() + " on the simulated driver: interrupted"));
    EXPECT_EQ(kill(run, 0), -1) << "the run goes on";
    EXPECT_EQ(RunCommand({"ls", blocking.place()}).out, "fifo\n") << "its temporary directory is left";
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Interrupt, ::testing::Values("sweep", "cycles"), [](const auto& test) { return std::string(test.param); });

// As nohup and the background of a shell start it.
TEST_P(Interrupt, GoesOnWhenItWasToldToIgnoreTheSignal) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const Blocking blocking;
    const std::string start = "trap '' " + std::to_string(number) + R"(; exec "$@")";
    Spawned command({"/bin/sh", "-c", start, "sh", Tool(), GetParam(), "--driver=sim", "--", "/bin/sh", "-c",
                     "[ -e " + blocking.place() + "/once ] || { touch " + blocking.place() + "/once; echo > " + blocking.place() +
                         "/fifo; read wait < " + blocking.place() + "/fifo; }; exec " + Program("client_linked"),
                     "sh", "{n}"});
    (void)blocking.Wait();
    command.Kill(number);
    std::ofstream(blocking.place() + "/fifo") << "go on\n";
    EXPECT_EQ(command.Wait().exit, 0) << strsignal(number);
  }
}

class InterruptedSweep : public ::testing::TestWithParam<const char*> {};

TEST_P(InterruptedSweep, ReportsTheTrialsThatWereDone) {
  const std::string directory = TemporaryDirectory();
  const std::string work = directory + "/work";
  const std::string json = directory + "/report.json";
  ASSERT_EQ(RunCommand({"mkdir", work}).exit, 0);
  const int watch = inotify_init1(IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(watch, work.c_str(), IN_MODIFY), 0);
  // One of its trials hangs for longer than a test may take, so the sweep is under way when the signal comes.
  Spawned sweep({Tool(), "sweep", "--driver=sim", "--deadline-ms=600000", "--depth=1", "--jobs=1", std::string("--isolation=") + GetParam(),
                 "--work-dir", work, "--format=text", "--format=json=" + json, "--format=junit=" + directory + "/report.xml", "--",
                 Program("hostile"), "hang"});
  ASSERT_TRUE(WaitForWrites(watch, "trials.jsonl", 1)) << "the trial log never grew";
  sweep.Kill(SIGINT);
  const CommandResult outcome = sweep.Wait();
  close(watch);
  ASSERT_EQ(outcome.exit, 130) << outcome.err;
  EXPECT_FALSE(AnyRunsIn(work));
  const nlohmann::json report = nlohmann::json::parse(ReadFile(json));
  EXPECT_EQ(report["outcome"], "interrupted");
  EXPECT_EQ(report["interrupted"]["signal"], "SIGINT");
  const int done = report["interrupted"]["done"];
  EXPECT_GE(done, 1);
  EXPECT_LT(done, 7);
  EXPECT_EQ(report["interrupted"]["planned"], 7) << "init, context, stream, memory, and three releases";
  EXPECT_EQ(report["totals"]["trials"], done);
  EXPECT_GE(report["coverage"]["not_reached"].size(), 1U);
  const std::string words = "interrupted, " + std::to_string(done) + " of 7 trials (SIGINT)";
  EXPECT_EQ(report["message"], words);
  EXPECT_THAT(outcome.out, HasSubstr("cuaudit sweep on the simulated driver: " + words + "\n"));
  EXPECT_THAT(outcome.err, HasSubstr(words + "; the same command goes on from here\n"));
  EXPECT_THAT(ReadFile(directory + "/report.xml"), HasSubstr("message=\"" + words + "\""));
  if (!ExpectValid(json)) GTEST_SKIP() << "python3-jsonschema is not installed: nobody held the report to its schema";
}

INSTANTIATE_TEST_SUITE_P(Every, InterruptedSweep, ::testing::Values("fork", "spawn"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Interrupted, CyclesReportTheRunsThatWereDone) {
  const Blocking blocking;
  Spawned cycles({Tool(), "cycles", "--driver=sim", "--format=json", "--", "/bin/sh", "-c",
                  "[ $1 = 1 ] || " + blocking.Script() + "; exec " + Program("client_linked"), "sh", "{n}"});
  ASSERT_GT(blocking.Wait(), 0);
  cycles.Kill(SIGTERM);
  const CommandResult outcome = cycles.Wait();
  EXPECT_EQ(outcome.exit, 143) << outcome.err;
  const nlohmann::json report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["message"], "interrupted, 1 of 2 runs (SIGTERM)");
  EXPECT_TRUE(report["cycles"]["counts"].empty()) << "one run is compared with nothing";
}

TEST(Interrupted, AReplayReportsThatItsTrialWasNotDone) {
  const Blocking blocking;
  const std::string first = blocking.place() + "/first";
  Spawned replay({Tool(), "replay", "--driver=sim", "--format=json", "--fault=cuInit#1", "--", "/bin/sh", "-c",
                  "[ ! -e " + first + " ] || " + blocking.Script() + "; touch " + first + "; exec " + Program("client_linked")});
  ASSERT_GT(blocking.Wait(), 0);
  replay.Kill(SIGINT);
  const CommandResult outcome = replay.Wait();
  EXPECT_EQ(outcome.exit, 130) << outcome.err;
  const nlohmann::json report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report["message"], "interrupted, 0 of 1 trials (SIGINT)");
  EXPECT_EQ(report["faults"].size(), 1U);
}

TEST(Interrupted, ARunIsNoCrashOfTheProgram) {
  for (const int number : {SIGTERM, SIGINT}) {
    const std::string directory = TemporaryDirectory();
    ASSERT_EQ(RunCommand({"mkfifo", directory + "/said"}).exit, 0);
    Spawned run({Tool(), "run", "--driver=sim", "--format=json=" + directory + "/report.json", "--", "/bin/sh", "-c",
                 "exec '" + Program("unattended") + "' waits > " + directory + "/said"});
    std::ifstream said(directory + "/said");
    std::string line;
    ASSERT_TRUE(std::getline(said, line)) << "it waits for a signal";
    run.Kill(number);
    const CommandResult outcome = run.Wait();
    EXPECT_EQ(outcome.exit, 128 + number) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("interrupted, 0 of 1 runs (SIG"));
    const nlohmann::json report = nlohmann::json::parse(ReadFile(directory + "/report.json"));
    EXPECT_EQ(report["outcome"], "interrupted");
    EXPECT_EQ(report["totals"]["calls"], 5) << "what it did until then is told";
    EXPECT_FALSE(report["live"].empty());
    EXPECT_TRUE(report["findings"].empty()) << "and not judged";
  }
}

// Where a report goes: an option, and words of a shell.
class FullPipe : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

// False: the command has ended before it had written so much.
bool WaitUntilFull(int reader, int size) {
  pollfd writer = {reader, POLLIN, 0};
  for (int held = 0; held < size; ioctl(reader, FIONREAD, &held)) {
    if (poll(&writer, 1, 0) > 0 && (writer.revents & POLLHUP) != 0) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_P(FullPipe, EndsWithTheSignalWhileNobodyReads) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string place = TemporaryDirectory();
    const std::string fifo = place + "/fifo";
    ASSERT_EQ(RunCommand({"mkfifo", fifo}).exit, 0);
    const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int size = fcntl(reader, F_SETPIPE_SZ, 1);
    Spawned command({"/bin/sh", "-c", std::string("exec \"$@\" ") + GetParam().second, "sh", Tool(), "sweep", "--driver=sim", "--depth=1",
                     GetParam().first, "--", Program("client_linked")},
                    {.environment = {"TMPDIR=" + place}, .directory = place});
    EXPECT_TRUE(WaitUntilFull(reader, size));
    command.Kill(number);
    const CommandResult outcome = command.Wait();
    EXPECT_EQ(outcome.exit, 128 + number) << outcome.err;
    EXPECT_EQ(RunCommand({"ls", place}).out, "fifo\n") << "its temporary directory is left";
    close(reader);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FullPipe,
                         ::testing::Values(std::pair("--format=html", "> fifo"), std::pair("--format=html=fifo", ""),
                                           std::pair("--format=html=/dev/stdout", "> fifo")));

}  // namespace
}  // namespace cuaudit::e2e::interrupt_test
