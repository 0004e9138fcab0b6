// SPDX-License-Identifier: MIT
// What a user can get wrong before anything runs: one line on stderr, nothing on stdout, the documented exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "faults/journal/journal_file.h"
#include "harness/sweep/work_dir.h"
#include "suites/unit/cli/tool.h"
#include "suites/unit/sweep/temporary_dir.h"

namespace cuaudit::harness {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Words = std::vector<std::string>;

void ExpectOneLine(const Said& said, int status, const std::string& what) {
  EXPECT_EQ(said.status, status) << said.err;
  EXPECT_TRUE(IsOneLine(said.err)) << said.err;
  EXPECT_THAT(said.err, HasSubstr(what));
  EXPECT_EQ(said.out, "");
}

TEST(Usage, BadFlagsAreOneLine) {
  ExpectOneLine(RunTool({"sweep", "--bogus", "--", "true"}), 2, "--bogus");
  ExpectOneLine(RunTool({"sweep"}), 2, "expected -- and a program");
  ExpectOneLine(RunTool({}), 2, "expected a command");
}

TEST(Usage, HelpAndVersionGoToStdout) {
  const Said help = RunTool({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("sweep"), HasSubstr("replay"), HasSubstr("explain")));
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(RunTool({"--version"}).out, HasSubstr("cuaudit "));
}

TEST(Usage, ProgramThatCannotBeRunIsOneLine) {
  const TemporaryDir dir;
  ASSERT_TRUE(WriteFile(dir.File("data"), "", Exit::Failure).ok());
  for (const char* const command : {"run", "sweep", "cycles"}) {
    ExpectOneLine(RunTool({command, "--driver=sim", "--", dir.File("none")}), 2, "not found");
    ExpectOneLine(RunTool({command, "--driver=sim", "--", dir.path()}), 2, "is a directory");
    ExpectOneLine(RunTool({command, "--driver=sim", "--", dir.File("data")}), 2, "not executable");
    ExpectOneLine(RunTool({command, "--driver=sim", "--", "cuaudit-no-such-program"}), 2, "not found");
  }
}

TEST(Usage, BadFaultTextNamesTheColumn) {
  ExpectOneLine(RunTool({"replay", "--fault", "cuMemAlloc#0=OUT_OF_MEMORY,refuse", "--", "true"}), 2, "column 12: expected a count from 1");
  ExpectOneLine(RunTool({"replay", "--fault", "cuNothing#1=OUT_OF_MEMORY", "--", "true"}), 2, "column 1: expected a driver entry point");
}

TEST(Usage, WhatOnlyTheHostProbesRefuseNeedsThem) {
  ExpectOneLine(RunTool({"sweep", "--driver=sim", "--no-host", "--how", "refuse,host_oom", "--", "true"}), 2,
                "expected --no-host or --how host_oom, not both");
  ExpectOneLine(RunTool({"sweep", "--driver=sim", "--no-host", "--how=host_thread", "--", "true"}), 2,
                "expected --no-host or --how host_thread, not both");
  ExpectOneLine(RunTool({"replay", "--driver=sim", "--no-host", "--fault", "malloc#1=host_oom", "--", "true"}), 2,
                "expected --no-host or --fault 'malloc#1=host_oom', not both");
}

TEST(Usage, BadPlanOptionsAreOneLine) {
  ExpectOneLine(RunTool({"sweep", "--how=gently", "--", "true"}), 2, "--how: 'gently'");
  ExpectOneLine(RunTool({"sweep", "--call=cuNothing", "--", "true"}), 2, "--call: 'cuNothing'");
  ExpectOneLine(RunTool({"cycles", "--n=10,1", "--", "true"}), 2, "--n: '10,1'");
}

TEST(Usage, BadOptionsOfTheSimulatedDriverAreOneLine) {
  for (const char* const command : {"run", "sweep", "cycles"}) {
    const auto refused = [&](const char* flag, const std::string& what) {
      ExpectOneLine(RunTool({command, "--driver=sim", flag, "--", "true"}), 2, what);
    };
    refused("--schedule=quick", "--schedule: 'quick': expected lazy, fifo, random:SEED");
    refused("--schedule=random:", "--schedule: 'random:': expected");
    refused("--devices=9", "--devices: '9': expected a number of devices from 1 to 8");
    refused("--device-memory=64MB", "--device-memory: '64MB': expected a size from 64MiB to 1024GiB");
    refused("--profile=h100", "--profile: 'h100': expected h200 or small");
    refused("--seed=x", "--seed: 'x': expected a number");
  }
  ExpectOneLine(RunTool({"run", "--driver=sim", "--schedule=random:7", "--seed=7", "--", "true"}), 2,
                "--seed: '7': expected the seed once");
}

TEST(Usage, ARealDriverIsNotAskedForASimulatedOnesOptions) {
  for (const char* const flag : {"--schedule=fifo", "--devices=2", "--device-memory=64MiB", "--profile=small", "--seed=2"}) {
    ExpectOneLine(RunTool({"run", "--driver=real", flag, "--", "true"}), 2, "only the simulated driver can be asked for it");
  }
}

TEST(Usage, OrdersOfTheUsersOwnAreRefused) {
  ExpectOneLine(RunTool({"run", "--driver=sim", "--", "true"}, {"CUAUDIT_OPTIONS=driver=sim"}), 2, "CUAUDIT_OPTIONS");
}

TEST(Usage, DirectoryWithoutWriteAccessIsOneLine) {
  const TemporaryDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0555), 0);
  ExpectOneLine(RunTool({"sweep", "--driver=sim", "--work-dir", dir.path(), "--", "true"}, {}, true), 2,
                "cannot write into the work directory");
  ExpectOneLine(RunTool({"sweep", "--driver=sim", "--work-dir", dir.File("new"), "--", "true"}, {}, true), 2,
                "cannot create the work directory");
  ExpectOneLine(RunTool({"sweep", "--driver=sim", "--output", dir.File("r.json"), "--", "true"}, {"TMPDIR=/tmp"}, true), 2, "--output");
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
}

TEST(Usage, OutputThatIsNoFileIsOneLine) {
  const TemporaryDir dir;
  ExpectOneLine(RunTool({"run", "--output", dir.path(), "--", "true"}), 2, "is a directory");
  ExpectOneLine(RunTool({"run", "--output", dir.File("none/r.json"), "--", "true"}), 2, "no such directory");
}

TEST(Usage, ReportAmongTheProgramsOwnOutputIsRefused) {
  for (const char* const format : {"json", "junit"}) {
    ExpectOneLine(RunTool({"run", "--format", format, "--", "true"}), 2, "expected --output FILE");
  }
}

TEST(Usage, AReaderThatWentAwayIsOurFailure) {
  const Said said = RunToolUnread({"list", "calls"});
  EXPECT_EQ(said.status, 125);
  EXPECT_TRUE(IsOneLine(said.err)) << said.err;
  EXPECT_THAT(said.err, HasSubstr("stdout"));
}

TEST(Usage, SecondSweepIntoADirectoryIsOneLine) {
  const TemporaryDir parent;
  const Result<WorkDir> held = WorkDir::Open(parent.File("work"));
  ASSERT_TRUE(held.ok()) << held.status().message();
  ExpectOneLine(RunTool({"sweep", "--driver=sim", "--work-dir", parent.File("work"), "--", "true"}), 2, "another cuaudit is using");
}

TEST(Usage, MissingGenuineDriverIsOneLine) {
  ExpectOneLine(RunTool({"run", "--driver=real", "--real-driver=/nonexistent/libcuda.so.1", "--", "true"}), 2, "--real-driver");
}

TEST(Usage, ExplainSaysWhatIsNoJournal) {
  const TemporaryDir dir;
  ASSERT_TRUE(WriteFile(dir.File("text"), "not a journal at all", Exit::Failure).ok());
  ASSERT_TRUE(WriteFile(dir.File("empty"), "", Exit::Failure).ok());
  ExpectOneLine(RunTool({"explain", dir.File("text")}), 2, "expected a cuaudit journal");
  ExpectOneLine(RunTool({"explain", dir.File("empty")}), 2, "expected a cuaudit journal");
  ExpectOneLine(RunTool({"explain", dir.File("none")}), 2, "No such file");
  ExpectOneLine(RunTool({"explain", dir.path()}), 2, "expected a regular file");
}

TEST(Usage, ExplainPrintsACutJournalAsFarAsItGoes) {
  const TemporaryDir dir;
  const std::string path = dir.File("journal");
  faults::JournalOptions options;
  options.record_capacity = 64;
  ASSERT_EQ(faults::CreateJournal(path.c_str(), options), nullptr);
  EXPECT_EQ(RunTool({"explain", path}).status, 0);
  const std::uintmax_t whole = std::filesystem::file_size(path);
  for (const std::uintmax_t size : {whole - 1, whole / 2, sizeof(faults::JournalHeader)}) {
    std::filesystem::resize_file(path, size);
    const Said said = RunTool({"explain", path});
    EXPECT_EQ(said.status, 2) << size;
    EXPECT_TRUE(IsOneLine(said.err)) << said.err;
    EXPECT_THAT(said.out, HasSubstr("the file is cut"));
  }
}

TEST(Usage, FullDiskUnderStdoutIsOurFailure) {
  const std::string tool = CUAUDIT_TOOL;
  EXPECT_EQ(system((tool + " list calls >/dev/full 2>/dev/null").c_str()), 125 << 8);
  EXPECT_EQ(system((tool + " --help >/dev/full 2>/dev/null").c_str()), 125 << 8);
}

TEST(Usage, ListsPrintEveryTable) {
  EXPECT_THAT(RunTool({"list", "calls"}).out, HasSubstr("cuMemAlloc "));
  EXPECT_THAT(RunTool({"list", "kinds"}).out, HasSubstr("primary_context"));
  EXPECT_THAT(RunTool({"list", "rules"}).out, HasSubstr("use_after_release"));
  EXPECT_THAT(RunTool({"list", "hows", "--format=json"}).out, HasSubstr("\"refuse+garbage\""));
  EXPECT_THAT(RunTool({"list", "probes"}).out, AllOf(HasSubstr("descriptors "), HasSubstr("host_heap "), HasSubstr(" us a block")));
  ExpectOneLine(RunTool({"list", "hows", "--format=junit"}), 2, "--format");
}

}  // namespace
}  // namespace cuaudit::harness
