// SPDX-License-Identifier: MIT
// What a user can get wrong before anything runs: one line on stderr, nothing on stdout, the documented exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>

#include "faults/journal/journal_file.h"
#include "harness/process/files.h"
#include "harness/process/work_dir.h"
#include "suites/support/temporary_dir.h"
#include "suites/unit/cli/tool.h"

namespace cuaudit::harness::usage_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
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
  EXPECT_THAT(RunTool({"compare", "--help"}).out, HasSubstr("--fail-on LIST=new,changed,not-run\n"));
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
  ExpectOneLine(RunTool({"replay", "--fault", "cuMemAlloc#2=", "--", "true"}), 2, "column 14: expected a CUDA error");
  ExpectOneLine(RunTool({"replay", "--fault", "cuMemAlloc", "--", "true"}), 2, "column 11: expected #N");
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
    refused("--undefined=abort", "--undefined: 'abort': expected error or crash");
  }
  ExpectOneLine(RunTool({"run", "--driver=sim", "--schedule=random:7", "--seed=7", "--", "true"}), 2,
                "--seed: '7': expected the seed once");
}

TEST(Usage, ARealDriverIsNotAskedForASimulatedOnesOptions) {
  for (const char* const flag :
       {"--schedule=fifo", "--devices=2", "--device-memory=64MiB", "--profile=small", "--seed=2", "--undefined=crash"}) {
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

TEST(Usage, APipeThatNobodyReadsIsNoticedBeforeTheFirstRun) {
  const TemporaryDir dir;
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& option : {"--format=json=" + pipe, "--trials=" + pipe}) {
    const Said said = RunTool({"sweep", "--driver=sim", option, "--", "/bin/sh", "-c", "touch " + dir.File("ran")});
    ExpectOneLine(said, 2, option.substr(0, option.find('=')) + ": " + pipe + ": cannot write: nobody reads from this pipe");
  }
  EXPECT_FALSE(std::filesystem::exists(dir.File("ran")));
}

TEST(Usage, ASocketIsNoPipe) {
  const TemporaryDir dir;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  dir.File("socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ExpectOneLine(RunTool({"run", "--driver=sim", "--format=json=" + dir.File("socket"), "--", "true"}), 2,
                "--format: " + dir.File("socket") + ": is a socket");
  EXPECT_EQ(WriteFile(dir.File("socket"), "x", Exit::Failure).message(), dir.File("socket") + ": cannot write: it is a socket");
}

TEST(Usage, FormatsThatLeadToOnePlaceAreOneLine) {
  const auto refused = [](Words options, const std::string& what) {
    options.insert(options.begin(), "sweep");
    options.insert(options.end(), {"--", "true"});
    ExpectOneLine(RunTool(options), 2, what);
  };
  refused({"--format=yaml"},
          "--format: 'yaml': expected text, json, junit, sarif, github, gitlab, markdown or html, or one of these and =FILE");
  refused({"--format=json="}, "--format: 'json=': expected");
  refused({"--format=text", "--format=json"}, "--format: expected at most one without =FILE");
  refused({"--format=json=a", "--format=junit=a"}, "--format: two results for a");
  refused({"--format=json=a", "--output=b"}, "--output: expected a --format without =FILE");
  refused({"--driver=sim", "--format=text", "--format=json=none/a"}, "no such directory");
}

TEST(Usage, WhatAMessageQuotesCannotSteerTheTerminal) {
  ExpectOneLine(RunTool({"run", "--driver=sim", "--", "\x1b[2J\nno\x9bprogram"}), 2, "\\x1b[2J\\nno\xEF\xBF\xBDprogram: not found");
  const TemporaryDir dir;
  const std::string path = dir.File("binary");
  ASSERT_TRUE(WriteFile(path,
                        std::string("jobs = 1\n\x7f"
                                    "ELF\0\x01\x1b[2J",
                                    20),
                        Exit::Failure)
                  .ok());
  ExpectOneLine(RunTool({"sweep", "--config", path, "--", "true"}), 2, path + ": line 2: expected text, options in TOML");
  ASSERT_TRUE(WriteFile(path, "[sweep]\nb\xff\xc2\x9b = 1\n", Exit::Failure).ok());
  const Said said = RunTool({"sweep", "--config", path, "--", "true"});
  ExpectOneLine(said, 2, "--config");
  EXPECT_EQ(said.err.find('\xff'), std::string::npos);
  EXPECT_EQ(said.err.find('\x9b'), std::string::npos);
}

TEST(Usage, AConfigFileSaysWhereItIsWrong) {
  const TemporaryDir dir;
  const std::string path = dir.File("options.toml");
  constexpr std::pair<const char*, const char*> kWrong[] = {
      {"[sweep]\nwork-dir = \"\"\n", ":2:12: work-dir: found \"\", expected a text: DIR"},
      {"[sweep]\ncall = [\"cuInit\", \"\"]\n", ":2:19: call: found \"\", expected a list of texts: NAME"},
      {"[sweep]\nhost = \"\"\n", ":2:8: host: found \"\", expected true or false"},
      {"[sweep]\nno-prune = \"\"\n", ":2:12: no-prune: found \"\", expected true or false"},
      {"[sweep]\nstrict-exit = \n", ":2:"},
      {"[sweep]\nhost = \"maybe\"\n", ":2:8: host: found \"maybe\", expected true or false"},
      {"[sweep]\ncall = \"cuInit\"\n", ":2:8: call: found \"cuInit\", expected a list of texts: NAME"},
      {"[sweep]\ncodes = [\"all\"]\n", ":2:9: codes: found a list, expected one of default, all"},
      {"[run]\nstacks = 25\n", ":2:10: stacks: found 25, expected a number from 0 to 24"},
      {"[sweep]\nno-prun = true\n", ":2:1: no-prun: no such key, expected an option of sweep, did you mean no-prune?"},
      {"[run]\njobs = 1\n", ":2:1: jobs: no such key, expected an option of run"},
      {"[sweep]\njobs = 1\njobs = 2\n", ":3:"},
      {"[swep]\njobs = 1\n", ":1:2: swep: no such command, expected a section for one, did you mean sweep?"},
      {"jobs = 1\n", ":1:8: jobs: found 1, expected a section of a command, such as [sweep]"},
  };
  for (const auto& [text, what] : kWrong) {
    ASSERT_TRUE(WriteFile(path, text, Exit::Failure).ok());
    ExpectOneLine(RunTool({"sweep", "--config", path, "--", "true"}), 2, "cuaudit: --config: " + path + what);
  }
  ExpectOneLine(RunTool({"sweep", "--config", dir.File("none"), "--", "true"}), 2,
                "--config: " + dir.File("none") + ": cannot open: No such file or directory");
}

TEST(Usage, TheLimitOnFileSizesNamesTheFileThatHitIt) {
  const TemporaryDir dir;
  const auto under_limit = [](const std::string& command) { return system(("ulimit -f 64; '" CUAUDIT_TOOL "' " + command).c_str()); };
  const std::string err = dir.File("err");
  EXPECT_EQ(under_limit("sweep --driver=sim --output " + dir.File("out") + " --work-dir " + dir.File("work") +
                        " -- '" CUAUDIT_SUBJECT "' 2>" + err),
            125 << 8);
  EXPECT_THAT(*ReadFile(err), AllOf(HasSubstr("rehearsal-1.journal"), HasSubstr("File too large (the limit on file sizes, ulimit -f)")));
  EXPECT_EQ(under_limit("list calls >" + dir.File("calls") + " 2>" + err), 125 << 8);
  EXPECT_THAT(*ReadFile(err), HasSubstr("stdout: cannot write: File too large"));
}

TEST(Usage, AReaderThatHasReadEnoughOfAPageEndsTheCommandAsOthers) {
  for (const Words& words : {Words{"list", "calls"}, Words{"explain", "--rule", "leak"}, Words{"--help"}}) {
    const Said said = RunToolUnread(words);
    EXPECT_EQ(said.status, 128 + SIGPIPE) << words[0];
    EXPECT_EQ(said.err, "");
  }
}

TEST(Usage, AReaderThatHasReadEnoughLeavesTheFilesOfOtherFormats) {
  const TemporaryDir dir;
  faults::JournalOptions recording = {.record_capacity = 64, .recording = true};
  ASSERT_EQ(faults::CreateJournal(dir.File("journal").c_str(), recording), nullptr);
  const std::string result = dir.File("result.json");
  EXPECT_EQ(RunTool({"run", "--driver=sim", "--format=json", "--output", result, "--", CUAUDIT_SUBJECT}).status, 0);
  const std::string file = dir.File("other.md");
  const auto expect_file = [&](Words words, int status) {
    words.insert(words.begin() + 1, {"--format=text", "--format=markdown=" + file});
    EXPECT_EQ(RunToolUnread(words).status, status) << words[0];
    EXPECT_TRUE(std::filesystem::remove(file)) << words[0];
  };
  expect_file({"explain", dir.File("journal")}, 128 + SIGPIPE);
  expect_file({"run", "--driver=sim", "--", CUAUDIT_SUBJECT}, 125);
  expect_file({"sweep", "--driver=sim", "--", CUAUDIT_SUBJECT}, 125);
  expect_file({"replay", "--driver=sim", "--fault=cuMemAlloc#1", "--", CUAUDIT_SUBJECT}, 125);
  expect_file({"report", result}, 125);
  expect_file({"compare", result, result}, 125);
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
  for (const char* const word : {"deficit", "misreported", "clean"}) {
    ExpectOneLine(RunTool({"explain", word}), 2, std::string(word) + ": no such file; --rule " + word + " says what the word means");
  }
  ExpectOneLine(RunTool({"explain", dir.path()}), 2, "expected a regular file");
}

TEST(Usage, ExplainPrintsACutJournalAsFarAsItGoes) {
  const TemporaryDir dir;
  const std::string path = dir.File("journal");
  faults::JournalOptions options = {.record_capacity = 64};
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

// The tool with its libraries, but without its own CUDA runtime.
TEST(Doctor, SaysWhichRuntimeIsMissingAndAllOthersThatItIsThere) {
  namespace fs = std::filesystem;
  const TemporaryDir dir;
  const fs::path libraries = fs::path(CUAUDIT_TOOL).parent_path().parent_path() / "lib/cuaudit";
  fs::create_directories(dir.File("bin"));
  fs::create_directories(dir.File("lib/cuaudit"));
  fs::copy_file(CUAUDIT_TOOL, dir.File("bin/cuaudit"));
  for (const char* const library : {"libcuda.so.1", "libcuaudit_host.so", "libcuaudit_host_basic.so"}) {
    fs::create_symlink(libraries / library, dir.File("lib/cuaudit/") + library);
  }
  const auto doctor = [&] {
    EXPECT_EQ(system((dir.File("bin/cuaudit") + " doctor --driver=sim >" + dir.File("said")).c_str()), 0);
    return *ReadFile(dir.File("said"));
  };
  if (doctor().find("was built with the headers of CUDA 12") != std::string::npos) return;
  const std::string runtime = dir.File("lib/cuaudit/cudart/libcudart.so.");
  EXPECT_THAT(doctor(), HasSubstr("CUDA runtime    no own one: " + runtime + "12, " + runtime + "13 missing: ./scripts/audit builds it"));
  fs::create_directories(dir.File("lib/cuaudit/cudart"));
  ASSERT_TRUE(WriteFile(runtime + "13", "", Exit::Failure).ok());
  EXPECT_THAT(doctor(), AllOf(HasSubstr("own, for programs of the shared runtime"), HasSubstr("; " + runtime + "12 missing: ")));
  ASSERT_TRUE(WriteFile(runtime + "12", "", Exit::Failure).ok());
  EXPECT_THAT(doctor(), AllOf(HasSubstr("simulated driver: " + dir.File("lib/cuaudit/cudart\n")), testing::Not(HasSubstr("missing"))));
}

TEST(Usage, ListsPrintEveryTable) {
  EXPECT_THAT(RunTool({"list", "calls"}).out, HasSubstr("cuMemAlloc "));
  EXPECT_THAT(RunTool({"list", "kinds"}).out, HasSubstr("primary_context"));
  EXPECT_THAT(RunTool({"list", "rules"}).out, HasSubstr("use_after_release"));
  EXPECT_THAT(RunTool({"list", "verdicts"}).out, HasSubstr("not_exercised"));
  EXPECT_THAT(RunTool({"list", "reasons"}).out, HasSubstr("unmodelled"));
  EXPECT_THAT(RunTool({"list", "hows", "--format=json"}).out, HasSubstr("\"refuse+garbage\""));
  EXPECT_THAT(RunTool({"list", "settings"}).out, AllOf(ContainsRegex("cuDeviceSetMemPool +device +cuDeviceGetMemPool\n"),
                                                       ContainsRegex("cuStreamSetAttribute +stream +cuStreamGetAttribute\n"),
                                                       ContainsRegex("cuMemAdvise +managed memory +-\n")));
  EXPECT_THAT(RunTool({"list", "probes"}).out, AllOf(HasSubstr("descriptors "), HasSubstr("host_heap "), HasSubstr(" us a block")));
  ExpectOneLine(RunTool({"list", "hows", "--format=junit"}), 2, "--format: list prints text or json to stdout");
  ExpectOneLine(RunTool({"list", "hows", "--format=json=hows.json"}), 2, "--format: list prints text or json to stdout");
}

TEST(Usage, ExplainsAWordOfAReport) {
  const Said rule = RunTool({"explain", "--rule", "double_release"});
  EXPECT_EQ(rule.status, 0) << rule.err;
  EXPECT_THAT(rule.out, AllOf(HasSubstr("double_release (rule, a finding): "), HasSubstr("\n  What to do: ")));
  EXPECT_THAT(RunTool({"explain", "--rule", "leak"}).out, AllOf(HasSubstr("leak (rule, a finding)"), HasSubstr("leak (verdict)")));
  EXPECT_THAT(RunTool({"explain", "--rule", "overflow"}).out, HasSubstr("overflow (why a trial proves nothing): journal overflow"));
  EXPECT_THAT(RunTool({"explain", "--rule", "unmodelled"}).out, HasSubstr("unmodelled (reason): "));
  ExpectOneLine(RunTool({"explain", "--rule", "leek"}), 2, "expected an outcome, a verdict, a rule, a reason or a change");
  ExpectOneLine(RunTool({"explain", "--rule", "leak", "journal"}), 2, "expected a journal or --rule");
}

}  // namespace
}  // namespace cuaudit::harness::usage_test
