// SPDX-License-Identifier: MIT
// Bad input: options, files and journals that cannot be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "faults/journal/layout.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::input_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Bad input: one line that says what is wrong, the right exit code, and nothing half written.

// `cuaudit LINE` with fixture and file names filled in; says one line that holds `words` and ends with `exit`.
void ExpectOneLine(const std::vector<std::string>& arguments, int exit, const std::string& words) {
  std::vector<std::string> command = {Tool()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const CommandResult run = RunCommand(command);
  std::string shown;
  for (const std::string& argument : arguments) shown += argument + " ";
  EXPECT_EQ(run.exit, exit) << shown << run.err;
  EXPECT_EQ(LineCount(run.err), 1U) << shown << run.err;
  EXPECT_THAT(run.err, HasSubstr(words)) << shown;
  EXPECT_THAT(run.err, StartsWith("cuaudit: ")) << shown;
}

TEST(BadProgram, IsNamedInOneLineByEveryCommand) {
  const std::string directory = TemporaryDirectory();
  const std::string text = directory + "/text";
  WriteFile(text, "no program\n");
  chmod(text.c_str(), 0644);
  const std::string garbage = directory + "/garbage";
  WriteFile(garbage, std::string("\x7f"
                                 "ELF\x02\x01\x01\0garbage",
                                 15));
  chmod(garbage.c_str(), 0755);
  for (const char* const command : {"run", "cycles", "sweep"}) {
    ExpectOneLine({command, "--driver=sim", "--", directory + "/missing"}, 2, "missing: not found");
    ExpectOneLine({command, "--driver=sim", "--", "cuaudit-no-such-program"}, 2, "cuaudit-no-such-program: not found");
    ExpectOneLine({command, "--driver=sim", "--", directory}, 2, "is a directory");
    ExpectOneLine({command, "--driver=sim", "--", ""}, 2, "empty");
    ExpectOneLine({command, "--driver=sim", "--", text}, 2, "not executable");
    ExpectOneLine({command, "--driver=sim", "--", garbage, "{n}"}, 2, "cannot execute");
    ExpectOneLine({command, "--driver=sim", "--"}, 2, "");
  }
}

TEST(NotExercised, AProgramThatNeverCallsTheDriverIsNeverClean) {
  for (const char* const command : {"run", "sweep"}) {
    const Audit audit = RunAudit({command}, {Program("idle")});
    EXPECT_EQ(audit.outcome.exit, 3) << command;
    EXPECT_THAT(audit.outcome.err, HasSubstr("not exercised"));
    EXPECT_EQ(audit.result(), "not_exercised");
  }
  const Audit other = RunAudit({"run"}, {"/bin/true"});
  EXPECT_EQ(other.outcome.exit, 3);
  EXPECT_THAT(other.outcome.err, HasSubstr("not exercised"));
}

TEST(NotExercised, AProgramThatOnlyAsksForTheVersionHasOneCall) {
  const Audit run = RunAudit({"run"}, {Program("idle"), "version"});
  EXPECT_EQ(run.outcome.exit, 0) << run.outcome.err;
  EXPECT_EQ(run.calls(), 1U);
  const Audit sweep = RunAudit({"sweep"}, {Program("idle"), "version"});
  EXPECT_EQ(sweep.outcome.exit, 3) << "a call that only describes the API is not made to fail: there is nothing to sweep";
  EXPECT_EQ(sweep.result(), "not_exercised");
}

TEST(BadFault, IsRefusedByTheCommandLineWithItsColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "column 1"},
      {"cuNoSuchCall#1=OUT_OF_MEMORY", "column 1"},
      {"cuMemAlloc#0=OUT_OF_MEMORY", "column 12"},
      {"cuMemAlloc#x=OUT_OF_MEMORY", "column 12"},
      {"cuMemAlloc#1=NO_SUCH_CODE", "column 14"},
      {"cuMemAlloc#1=SUCCESS", "column 14"},
      {"cuMemAlloc#1=", "column 14"},
      {"cuMemAlloc#1=OUT_OF_MEMORY,sometimes", "column 28"},
      {"cuMemAlloc#1=OUT_OF_MEMORY,burst:0", "column"},
      {"cuMemAlloc#1@lunch=OUT_OF_MEMORY", "column 14"},
      {"cuMemAlloc#99999999999=OUT_OF_MEMORY", "column"},
  };
  for (const auto& [fault, words] : cases) {
    ExpectOneLine({"replay", "--driver=sim", "--fault", fault, "--", Program("client_linked")}, 2, words);
  }
}

// The drop-in, without the tool around it.
CommandResult DropIn(const std::string& options) {
  return RunCommand({Program("client_linked")}, {.environment = {"LD_LIBRARY_PATH=" + DropInDirectory(), "CUAUDIT_OPTIONS=" + options}});
}

TEST(BadOptions, StopTheProgramBeforeItBeginsWithOneLine) {
  const std::pair<std::string, const char*> cases[] = {
      {"driver", "key=value"},
      {"driver=fake", "expected auto, real or sim"},
      {"scope=wide", "expected pinned or process"},
      {"colour=red",
       "expected one of journal record driver real_driver scope fault forks host cycles schedule devices device_memory profile seed "
       "kernels undefined"},
      {"driver=sim;schedule=quick", "schedule=quick: expected lazy, fifo"},
      {"driver=sim;devices=0", "devices=0: expected a number of devices from 1 to 8"},
      {"driver=sim;device_memory=1", "device_memory=1: expected a size from 64MiB"},
      {"driver=sim;profile=", "profile=: expected h200 or small"},
      {"driver=sim;seed=", "seed=: expected a number"},
      {"driver=sim;seed=1;schedule=random:2", "expected the seed once"},
      {"driver=sim;kernels=kernels.so", "kernels=kernels.so: expected an absolute path"},
      {"driver=real;kernels=/kernels.so", "driver=real: expected the simulated driver with kernels"},
      {"driver=sim;kernels=/nonexistent/kernels.so", "kernels: /nonexistent/kernels.so: cannot open shared object file"},
      {"driver=sim;kernels=" + DropInDirectory() + "/libcuaudit_host.so", "registered no host kernel"},
      {"driver=real;devices=2", "driver=real: expected the simulated driver with devices"},
      {"schedule=fifo;driver=real", "driver=real: expected the simulated driver with schedule"},
      {"driver=sim;fault=cuMemAlloc#1=NONSENSE", "fault="},
      {"driver=sim;fault=cuMemAlloc", "fault="},
      {"real_driver=relative/libcuda.so.1", "absolute path"},
      {"journal=" + std::string(2000, 'j'), "path shorter than"},
      {"driver=sim;journal=/nonexistent/journal", "/nonexistent/journal"},
      {"driver=sim;journal=/dev/null", "/dev/null"},
      {"driver=sim;journal=/etc/passwd", "/etc/passwd"},
  };
  for (const auto& [options, words] : cases) {
    const CommandResult run = DropIn(options);
    EXPECT_EQ(run.exit, 2) << options << run.err;
    EXPECT_EQ(run.out, "") << options;
    EXPECT_EQ(LineCount(run.err), 1U) << run.err;
    EXPECT_THAT(run.err, HasSubstr(words)) << options;
    EXPECT_THAT(run.err, StartsWith("cuaudit: ")) << options;
  }
}

TEST(BadKernels, AreRefusedBeforeTheProgramRuns) {
  const std::string directory = TemporaryDirectory();
  WriteFile(directory + "/text.so", "no library\n");
  const auto kernels = [&](const std::string& driver, const std::string& file) {
    return std::vector<std::string>{"run", "--driver=" + driver, "--kernels=" + file, "--", "/bin/sh", "-c", "touch " + directory + "/ran"};
  };
  ExpectOneLine(kernels("sim", directory + "/missing.so"), 2, "--kernels: " + directory + "/missing.so: not found");
  ExpectOneLine(kernels("sim", directory), 2, "is no file");
  ExpectOneLine(kernels("sim", directory + "/text.so"), 2, "expected a shared library");
  ExpectOneLine(kernels("real", DropInDirectory() + "/libcuaudit_host.so"), 2, "only the simulated driver can be asked for it");
  EXPECT_NE(access((directory + "/ran").c_str(), F_OK), 0);
}

TEST(BadOptions, SixteenFaultsAreTakenAndOneMoreIsNot) {
  std::string options = "driver=sim";
  for (int i = 1; i <= 16; ++i) options += ";fault=cuMemAlloc#" + std::to_string(i + 100) + "=OUT_OF_MEMORY";
  EXPECT_EQ(DropIn(options).exit, 0);
  const CommandResult run = DropIn(options + ";fault=cuMemFree#1=INVALID_VALUE");
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, HasSubstr("at most 16 faults"));
}

TEST(BadOptions, OrdersOfTheUsersOwnAreRefusedByTheTool) {
  const CommandResult run =
      RunCommand({Tool(), "run", "--driver=sim", "--", Program("client_linked")}, {.environment = {"CUAUDIT_OPTIONS=driver=sim"}});
  EXPECT_EQ(run.exit, 2) << run.err;
  EXPECT_THAT(run.err, HasSubstr("CUAUDIT_OPTIONS is set"));
}

TEST(BadCounts, AreRefusedInOneLine) {
  for (const char* const counts : {"", "1", "10,1", "1,1", "0,10", "a,b", "1,10,", "-1,10", "1,99999999999999999999"}) {
    ExpectOneLine({"cycles", "--driver=sim", "--n", counts, "--", Program("client_linked"), "{n}"}, 2, "--n");
  }
}

TEST(BadCounts, CyclesOfAProgramThatCannotBeToldHowManyIsOneLine) {
  const Audit audit = RunAudit({"cycles"}, {Program("client_linked")});
  EXPECT_EQ(audit.outcome.exit, 2) << audit.outcome.err;
  EXPECT_EQ(LineCount(audit.outcome.err), 1U) << audit.outcome.err;
  EXPECT_THAT(audit.outcome.err, HasSubstr("expected {n} in the command"));
}

TEST(NoDriver, AskingForARealOneWithoutAGpuIsOneLineAndStatus3) {
  if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/nvidia0", F_OK) == 0 || access("/dev/dxg", F_OK) == 0) {
    GTEST_SKIP() << "there is a device node";
  }
  for (const char* const command : {"run", "sweep", "cycles"}) {
    ExpectOneLine({command, "--driver=real", "--", Program("client_linked"), "{n}"}, 3, "--driver=real: no ");
  }
}

TEST(BadOutput, APlaceThatCannotBeWrittenIsFoundOutBeforeTheWork) {
  const std::string directory = TemporaryDirectory();
  WriteFile(directory + "/file", "kept");
  const auto output = [&](const std::string& path) {
    return std::vector<std::string>{"run", "--driver=sim", "--output", path, "--", "/bin/sh", "-c", "touch " + directory + "/ran"};
  };
  ExpectOneLine(output(directory), 2, "is a directory");
  ExpectOneLine(output(directory + "/file/report"), 2, "no such directory");
  ExpectOneLine(output(directory + "/none/report"), 2, "no such directory");
  ExpectOneLine(output("/proc/report"), 2, "/proc");
  EXPECT_FALSE(std::filesystem::exists(directory + "/ran")) << "nothing was started";
  EXPECT_EQ(ReadFile(directory + "/file"), "kept");
}

TEST(BadOutput, AWorkDirectoryThatCannotBeUsedIsOneLine) {
  const std::string directory = TemporaryDirectory();
  WriteFile(directory + "/file", "kept");
  const auto work = [&](const std::string& path) {
    return std::vector<std::string>{"sweep", "--driver=sim", "--work-dir", path, "--", Program("client_linked")};
  };
  ExpectOneLine(work(directory + "/file"), 2, "directory");
  ExpectOneLine(work(directory + "/file/below"), 2, "directory");
  ExpectOneLine(work("/proc/work"), 2, "/proc/work");
  ExpectOneLine(work(directory + "/a;b"), 2, "';'");
  EXPECT_EQ(ReadFile(directory + "/file"), "kept");
}

TEST(Records, ACapacityTooSmallIsAnErrorAndNeverClean) {
  for (const char* const command : {"run", "sweep"}) {
    const Audit audit = RunAudit({command, "--records", "1024"}, {Program("threads")});
    EXPECT_NE(audit.outcome.exit, 0) << command;
    EXPECT_THAT(audit.outcome.err, HasSubstr("--records")) << command;
    EXPECT_NE(audit.result(), "clean") << command;
  }
  ExpectOneLine({"run", "--records", "10", "--", Program("client_linked")}, 2, "--records");
}

// A journal that was cut anywhere, or is no journal: `explain` says so in one line, status 2, and does not crash.

constexpr std::size_t kRecords = 1024;

// A directory with the journal of one small run, kept.
std::string JournalOf(const std::string& program) {
  const std::string directory = TemporaryDirectory() + "/work";
  const Audit audit = RunAudit({"run", "--keep", "--records", std::to_string(kRecords), "--work-dir", directory}, {Program(program)});
  EXPECT_EQ(audit.outcome.exit, 0) << audit.outcome.err;
  return directory + "/run.journal";
}

struct Offsets {
  std::size_t modules, stacks, records, file;
};

Offsets OffsetsOf(const std::string& bytes) {
  const auto at = [&](std::size_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return static_cast<std::size_t>(value);
  };
  return {at(offsetof(faults::JournalHeader, modules_offset)), at(offsetof(faults::JournalHeader, stacks_offset)),
          at(offsetof(faults::JournalHeader, records_offset)), bytes.size()};
}

TEST(Explain, AWholeJournalIsPrinted) {
  const CommandResult run = RunCommand({Tool(), "explain", JournalOf("client_linked")});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("cuMemcpyDtoH_v2("));
  EXPECT_THAT(run.out, HasSubstr(" host probes are loaded\n"));
  EXPECT_THAT(run.out, HasSubstr("alive at the end:\nnothing\n"));
  EXPECT_THAT(run.out, HasSubstr("violations:\nnone\n"));
}

TEST(Explain, AJournalCutAnywhereIsOneLineAndStatus2) {
  const std::string journal = JournalOf("client_linked");
  const std::string bytes = ReadFile(journal);
  ASSERT_GT(bytes.size(), sizeof(faults::JournalHeader));
  const Offsets offset = OffsetsOf(bytes);
  ASSERT_EQ(offset.file - offset.records, kRecords * sizeof(faults::Record));
  std::set<std::size_t> cuts;
  for (std::size_t cut = 0; cut < sizeof(faults::JournalHeader); cut += 97) cuts.insert(cut);
  for (const std::size_t edge : {sizeof(faults::JournalHeader), offset.modules, offset.stacks, offset.records}) {
    for (const std::size_t cut : {edge - 1, edge, edge + 1}) cuts.insert(cut);
  }
  for (std::size_t record = 0; record < 16; ++record) {
    const std::size_t at = offset.records + record * sizeof(faults::Record);
    for (const std::size_t cut : {at + 1, at + 64, at + 127, at + 128}) cuts.insert(cut);
  }
  cuts.insert(offset.file - 1);
  const std::string cut_journal = journal + ".cut";
  WriteFile(cut_journal, bytes);
  // From the longest to the shortest, so that one file serves all.
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    ASSERT_EQ(truncate(cut_journal.c_str(), static_cast<off_t>(*cut)), 0);
    const CommandResult run = RunCommand({Tool(), "explain", cut_journal});
    EXPECT_EQ(run.exit, 2) << *cut << " bytes: signal " << run.signal << run.err;
    EXPECT_EQ(LineCount(run.err), 1U) << *cut << " bytes: " << run.err;
    EXPECT_THAT(run.err, StartsWith("cuaudit: " + cut_journal)) << *cut;
  }
}

TEST(Explain, AMissingJournalADirectoryAndAStrangerAreOneLineEach) {
  const std::string directory = TemporaryDirectory();
  WriteFile(directory + "/empty", "");
  WriteFile(directory + "/text", "this is no journal\n");
  WriteFile(directory + "/long", std::string(100000, 'x'));
  for (const std::string name : {"/missing", "", "/empty", "/text", "/long"}) {
    const CommandResult run = RunCommand({Tool(), "explain", directory + name});
    EXPECT_EQ(run.exit, 2) << name << run.err;
    EXPECT_EQ(LineCount(run.err), 1U) << name << run.err;
    EXPECT_EQ(run.out, "") << name;
  }
}

TEST(Explain, AHeaderWithAnyByteChangedIsNeverACrash) {
  const std::string journal = JournalOf("client_linked");
  const std::string bytes = ReadFile(journal);
  // The fixed part of the header holds all that a reader must check: sizes, offsets and counts.
  for (std::size_t at = 0; at < offsetof(faults::JournalHeader, driver_path); at += 3) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0xff);
    WriteFile(journal + ".changed", changed);
    const CommandResult run = RunCommand({Tool(), "explain", journal + ".changed"});
    EXPECT_EQ(run.signal, 0) << "byte " << at;
    EXPECT_THAT(run.exit, ::testing::AnyOf(0, 2)) << "byte " << at << run.err;
  }
}

TEST(Explain, TheJournalOfAProgramKilledInMidFlightIsReadable) {
  const std::string directory = TemporaryDirectory() + "/work";
  const Audit audit =
      RunAudit({"replay", "--keep", "--work-dir", directory, "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("hostile"), "kill"});
  EXPECT_EQ(audit.verdicts(), R"({"crash":1})") << audit.outcome.err;
  const CommandResult found = RunCommand({"/bin/sh", "-c", "ls " + directory + "/*.journal"});
  std::size_t injected = 0;
  for (const std::string& path : Words(found.out)) {
    const CommandResult run = RunCommand({Tool(), "explain", path});
    EXPECT_EQ(run.exit, 0) << path << run.err;
    if (run.out.find("[injected by fault 1]") != std::string::npos) {
      ++injected;
      EXPECT_THAT(run.out, HasSubstr("cuMemAlloc_v2(")) << path;
      EXPECT_THAT(run.out, HasSubstr("stream 0x")) << "what was alive when it died";
    }
  }
  EXPECT_EQ(injected, 1U) << found.out;
}

}  // namespace
}  // namespace cuaudit::e2e::input_test
