// SPDX-License-Identifier: MIT
// `cuaudit record` in production: what it leaves after any end of the program, what is made of that elsewhere, and what it never contains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "faults/journal/journal_view.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::record_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Recorded {
  std::string file;
  CommandResult outcome;
};

Recorded Record(const std::string& words, const std::vector<std::string>& options = {}, const How& how = {},
                const std::string& program = Program("recorded")) {
  Recorded recorded;
  recorded.file = TemporaryDirectory() + "/field.journal";
  std::vector<std::string> command = {Tool(), "record", "--driver=sim", "--journal", recorded.file};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", program});
  for (const std::string& word : Words(words)) command.push_back(word);
  recorded.outcome = RunCommand(command, how);
  return recorded;
}

CommandResult Explain(const std::string& file, const std::vector<std::string>& options = {}) {
  std::vector<std::string> command = {Tool(), "explain", file};
  command.insert(command.end(), options.begin(), options.end());
  return RunCommand(command);
}

std::size_t SizeOf(const std::string& file) {
  struct stat facts = {};
  return stat(file.c_str(), &facts) == 0 ? static_cast<std::size_t>(facts.st_size) : 0;
}

TEST(Record, WhatIsLeftIsSaidWithItsPlace) {
  const Recorded recorded = Record("keep keep");
  EXPECT_EQ(recorded.outcome.exit, 0) << recorded.outcome.err;
  EXPECT_EQ(recorded.outcome.out, "");
  EXPECT_EQ(LineCount(recorded.outcome.err), 1U) << recorded.outcome.err;
  EXPECT_THAT(recorded.outcome.err, HasSubstr("cuaudit explain " + recorded.file));
  EXPECT_LT(SizeOf(recorded.file), 64U << 10U);
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 1) << seen.err;
  EXPECT_THAT(seen.out, StartsWith("recording " + recorded.file));
  EXPECT_THAT(seen.out, HasSubstr("nothing: it begins with the program"));
  EXPECT_THAT(seen.out, HasSubstr("reached its exit"));
  EXPECT_THAT(seen.out, HasSubstr("left: 2 objects"));
  EXPECT_THAT(seen.out, HasSubstr("keep_stream"));
  EXPECT_EQ(Explain(recorded.file).out, seen.out) << "the same file, the same bytes";
}

TEST(Record, ACleanProgramIsClean) {
  const Recorded recorded = Record("early late");
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 0) << seen.out << seen.err;
  EXPECT_THAT(seen.out, HasSubstr(": clean"));
}

TEST(Record, EndsAsTheProgramEnds) {
  EXPECT_EQ(Record("no_such_word").outcome.exit, 4);
  EXPECT_EQ(Record("kill").outcome.exit, 137);
  EXPECT_EQ(Record("crash").outcome.exit, 134);
}

TEST(Record, AKillAtAnyMomentLeavesAReadableRecording) {
  for (int turn = 0; turn < 5; ++turn) {
    const Recorded recorded = Record("keep push killer");
    EXPECT_EQ(recorded.outcome.exit, 137);
    const CommandResult seen = Explain(recorded.file);
    EXPECT_EQ(seen.exit, 3) << "killed: neither clean nor a leak" << seen.out;
    EXPECT_THAT(seen.out, HasSubstr("no end was recorded: it was killed, or it still runs"));
    EXPECT_THAT(seen.out, HasSubstr("held when the recording ends"));
    EXPECT_THAT(seen.out, HasSubstr("1 stream, 0 bytes: cuStreamCreate"));
    EXPECT_THAT(seen.out, Not(HasSubstr("context stack left"))) << "there was no time to pop";
    EXPECT_THAT(seen.out, HasSubstr("keep_stream"));
    EXPECT_THAT(seen.out, Not(HasSubstr(": clean")));
    EXPECT_THAT(seen.out, Not(HasSubstr("left_at_exit")));
  }
}

TEST(Record, ACrashSaysWhere) {
  const Recorded recorded = Record("keep crash");
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 3) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("died of SIGABRT"));
  EXPECT_THAT(seen.out, ContainsRegex("act .*recorded.c"));
  EXPECT_THAT(seen.out, HasSubstr("keep_stream"));
}

TEST(Record, ACrashInACallThatIsOnlyCountedNamesIt) {
  const Recorded recorded = Record("ask unwritable");
  EXPECT_EQ(recorded.outcome.exit, 139);
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 3) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("died of SIGSEGV"));
  EXPECT_THAT(seen.out, HasSubstr("under way at the end: cuMemGetInfo"));
}

TEST(Record, MisuseIsAFinding) {
  const CommandResult seen = Explain(Record("twice").file);
  EXPECT_EQ(seen.exit, 1) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("released twice"));
}

// 60,000 events push out whatever came before.
TEST(Record, TheRingSaysWhatItCannotSee) {
  const Recorded recorded = Record("keep early churn late", {"--max-size", "32MiB"});
  EXPECT_EQ(recorded.outcome.exit, 0) << recorded.outcome.err;
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 3) << seen.out;
  EXPECT_THAT(seen.out, HasSubstr("lacks    its beginning"));
  EXPECT_THAT(seen.out, HasSubstr("1 of stream: released here, and held since before the record"));
  EXPECT_THAT(seen.out, HasSubstr("calls that acquire"));
  EXPECT_THAT(seen.out, Not(HasSubstr(": clean")));
  EXPECT_THAT(seen.out, Not(HasSubstr("keep_stream"))) << "what was acquired before is no leak";
}

TEST(Record, CopiesDoNotPushOutWhatIsHeld) {
  const Recorded recorded = Record("keep copies", {"--max-size", "32MiB"});
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 1) << seen.out;
  EXPECT_THAT(seen.out, HasSubstr("keep_stream"));
  EXPECT_THAT(seen.out, HasSubstr("of launches, copies, queries and waits"));
}

TEST(Record, CallsThatOnlyAskAreCounted) {
  const Recorded recorded = Record("keep ask", {"--max-size", "32MiB"});
  EXPECT_EQ(recorded.outcome.exit, 0) << recorded.outcome.err;
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 1) << seen.out;
  EXPECT_THAT(seen.out, HasSubstr("lacks    nothing: it begins with the program"));
  EXPECT_THAT(seen.out, HasSubstr("counted  60000 calls that only ask"));
  const CommandResult records = Explain(recorded.file, {"--every-record"});
  EXPECT_THAT(records.out, Not(HasSubstr("cuCtxGetDevice")));
  EXPECT_THAT(records.out, ContainsRegex("cuDeviceGetAttribute\\(.*INVALID_DEVICE")) << "one that fails has a record";
}

TEST(Record, AContextStackFromBeforeIsNoMisuse) {
  const CommandResult seen = Explain(Record("push churn push pop pop", {"--max-size", "32MiB"}).file);
  EXPECT_EQ(seen.exit, 3) << seen.out;
  EXPECT_THAT(seen.out, Not(HasSubstr("context stack left")));
}

TEST(Record, GrowthOfMarkedCyclesIsSeenInBothCommands) {
  const Recorded recorded = Record("grow");
  const CommandResult cycles = RunCommand({Tool(), "cycles", "--from-journal", recorded.file});
  EXPECT_EQ(cycles.exit, 1) << cycles.out << cycles.err;
  EXPECT_THAT(cycles.out, HasSubstr("growth per cycle: event +1"));
  const CommandResult seen = Explain(recorded.file);
  EXPECT_EQ(seen.exit, 1) << seen.err;
  EXPECT_THAT(seen.out, HasSubstr("growth per cycle: event +1"));
  const CommandResult json = RunCommand({Tool(), "cycles", "--from-journal", recorded.file, "--format", "json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["outcome"], "findings") << json.err;
}

TEST(Record, ACacheIsNoGrowthAlsoWhenItsBeginningIsGone) {
  const CommandResult whole = RunCommand({Tool(), "cycles", "--from-journal", Record("cache").file});
  EXPECT_EQ(whole.exit, 0) << whole.out << whole.err;
  const CommandResult cut = RunCommand({Tool(), "cycles", "--from-journal", Record("churn cache", {"--max-size", "32MiB"}).file});
  EXPECT_EQ(cut.exit, 3) << cut.out << cut.err;
  EXPECT_THAT(cut.out, Not(HasSubstr("growth per cycle: event")));
  EXPECT_THAT(cut.out, HasSubstr("a part of it is missing"));
  const CommandResult none = RunCommand({Tool(), "cycles", "--from-journal", Record("keep").file});
  EXPECT_EQ(none.exit, 2);
  EXPECT_EQ(LineCount(none.err), 1U) << none.err;
}

TEST(Record, IsExplainedWithoutTheProgram) {
  const std::string place = TemporaryDirectory();
  const std::string program = place + "/service";
  WriteFile(program, ReadFile(Program("recorded")));
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  const Recorded recorded = Record("keep", {}, {}, program);
  EXPECT_THAT(Explain(recorded.file).out, HasSubstr("keep_stream"));
  // The machine of somebody else.
  ASSERT_EQ(mkdir((place + "/symbols").c_str(), 0755), 0);
  ASSERT_EQ(rename(program.c_str(), (place + "/symbols/service").c_str()), 0);
  const CommandResult bare = Explain(recorded.file);
  EXPECT_EQ(bare.exit, 1) << bare.err;
  EXPECT_THAT(bare.out, Not(HasSubstr("keep_stream")));
  EXPECT_THAT(bare.out, ContainsRegex("service\\+0x[0-9a-f]+"));
  EXPECT_THAT(bare.out, ContainsRegex(program + ", build id [0-9a-f]+\n"));
  EXPECT_THAT(Explain(recorded.file, {"--modules", place + "/symbols"}).out, HasSubstr("keep_stream"));
  // Another build under the same name is not believed.
  WriteFile(place + "/symbols/service", ReadFile(Program("stays")));
  EXPECT_EQ(Explain(recorded.file, {"--modules", place + "/symbols"}).out, bare.out);
}

TEST(Record, AShellCanStartTheProgramsByItself) {
  const std::string file = TemporaryDirectory() + "/field.journal";
  const std::string lines = "eval \"$($0 record --print-environment --driver=sim --journal " + file + ")\"\n";
  const CommandResult run =
      RunCommand({"/bin/sh", "-c", lines + lines + Program("recorded") + " keep\n" + Program("recorded") + " twice kill", Tool()});
  EXPECT_EQ(run.exit, 137) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("cuaudit")));
  const CommandResult open = Explain(file);
  EXPECT_EQ(open.exit, 1) << open.err;
  EXPECT_THAT(open.out, HasSubstr("released twice"));
  EXPECT_THAT(open.out, HasSubstr("reached its exit"));
  EXPECT_THAT(open.out, HasSubstr("no end was recorded"));
  EXPECT_THAT(open.out, HasSubstr("left_at_exit: 1 stream")) << "of the process that ended by itself";
  EXPECT_THAT(open.out, HasSubstr("1 primary_context, 0 bytes")) << "of the one that was killed";
  EXPECT_THAT(open.out, HasSubstr("keep_stream"));
  EXPECT_EQ(SizeOf(file), 256U << 20U);
  const CommandResult packed = RunCommand({Tool(), "record", "--pack", file});
  EXPECT_EQ(packed.exit, 0) << packed.err;
  EXPECT_LT(SizeOf(file), 64U << 10U);
  EXPECT_EQ(Explain(file).out, open.out);
  // What was packed is not recorded into: the program says so and goes on.
  const CommandResult later =
      RunCommand({Program("recorded"), "keep"},
                 {{"CUAUDIT_OPTIONS=record=" + file + ";driver=sim", "LD_PRELOAD=" + DropInDirectory() + "/libcuda.so.1"}});
  EXPECT_EQ(later.exit, 0);
  EXPECT_EQ(LineCount(later.err), 1U) << later.err;
  EXPECT_THAT(later.err, HasSubstr("nothing is recorded"));
}

TEST(Record, AFullDiskIsOneLineAndTheProgramGoesOn) {
  const std::string place = TemporaryDirectory();
  const auto on_small_disk = [&](const std::string& command) {
    return RunCommand({"unshare", "-r", "-m", "/bin/sh", "-c", "mount -t tmpfs -o size=1M tmpfs " + place + " || exit 77; " + command});
  };
  if (on_small_disk("exit 0").exit != 0) GTEST_SKIP() << "no mounts in a user namespace here";
  const std::string file = place + "/field.journal";
  const CommandResult run = on_small_disk(Tool() + " record --driver=sim --journal " + file + " -- " + Program("recorded") +
                                          " keep churn keep; " + "echo ended $?; " + Tool() + " explain " + file);
  EXPECT_THAT(run.out, HasSubstr("ended 0\n")) << run.err;
  EXPECT_THAT(run.err, HasSubstr("is readable as it is"));
  EXPECT_EQ(LineCount(run.err), 1U) << run.err;
  EXPECT_THAT(run.out, HasSubstr("disk     it was full"));
  EXPECT_THAT(run.out, HasSubstr("lacks    its beginning")) << "the newest records are the ones that are kept";
  EXPECT_THAT(run.out, HasSubstr("left: 1 object"));
}

TEST(Record, DamagedFilesAreOneLineForEveryReader) {
  const Recorded recorded = Record("keep early late");
  const std::string good = ReadFile(recorded.file);
  const std::string bad = recorded.file + ".bad";
  const std::vector<std::vector<std::string>> readers = {{"explain", bad}, {"cycles", "--from-journal", bad}, {"record", "--pack", bad}};
  const auto refused = [&](const std::string& bytes, const std::string& what) {
    WriteFile(bad, bytes);
    for (std::vector<std::string> command : readers) {
      command.insert(command.begin(), Tool());
      const CommandResult run = RunCommand(command);
      EXPECT_EQ(run.exit, 2) << what << " " << command[1] << run.err;
      EXPECT_EQ(LineCount(run.err), 1U) << what << run.err;
      EXPECT_THAT(run.err, HasSubstr(bad));
      EXPECT_EQ(run.out, "") << what;
    }
    EXPECT_EQ(ReadFile(bad), bytes) << "left as it was";
  };
  refused("", "empty");
  refused("cuauditJ", "only the first word");
  for (const std::size_t cut : {std::size_t{100}, sizeof(faults::JournalHeader), good.size() / 2, good.size() - 1})
    refused(good.substr(0, cut), "cut at " + std::to_string(cut));
  for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{17}, std::size_t{200}, sizeof(faults::JournalHeader) + 60}) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    refused(changed, "changed at " + std::to_string(at));
  }
  std::string other = good;
  other[offsetof(faults::JournalHeader, flags) + 1] ^= static_cast<char>(faults::kRecording >> 8U);
  refused(other, "no recording any more");
  std::string last = good;
  last[last.size() - 100] = static_cast<char>(last[last.size() - 100] ^ 1);  // in the last record
  WriteFile(bad, last);
  const CommandResult run = Explain(bad);
  EXPECT_THAT(run.out, HasSubstr("damaged  1 record")) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr(": clean")));
}

TEST(Record, WrongOptionsAreOneLineAndNothingStarts) {
  const std::string there = TemporaryDirectory() + "/there";
  WriteFile(there, "precious");
  for (const std::string options : {"--max-size 1MiB", "--max-size many", "--last 10", "--last 500000h", "--pack x --print-environment",
                                    "--driver nvidia", "--journal ''", "--no-such"}) {
    const CommandResult run = RunCommand({"/bin/sh", "-c", "exec \"$0\" record " + options + " -- /bin/echo started", Tool()});
    EXPECT_EQ(run.exit, 2) << options << run.out << run.err;
    EXPECT_EQ(LineCount(run.err), 1U) << options << run.err;
    EXPECT_EQ(run.out, "") << options;
  }
  const CommandResult exists = RunCommand({Tool(), "record", "--driver=sim", "--journal", there, "--", "/bin/echo", "started"});
  EXPECT_EQ(exists.exit, 2);
  EXPECT_EQ(LineCount(exists.err), 1U) << exists.err;
  EXPECT_EQ(ReadFile(there), "precious");
  const CommandResult nothing = RunCommand({Tool(), "record"});
  EXPECT_EQ(nothing.exit, 2);
  EXPECT_EQ(LineCount(nothing.err), 1U) << nothing.err;
}

constexpr std::size_t kShortestText = 8;

// Texts of the file that are long enough to be one.
std::vector<std::string> TextsOf(const std::string& bytes) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < bytes.size(); ++begin) {
    std::size_t end = begin;
    while (end < bytes.size() && bytes[end] >= ' ' && bytes[end] <= '~') ++end;
    if (end - begin >= kShortestText) texts.push_back(bytes.substr(begin, end - begin));
    begin = end;
  }
  return texts;
}

// docs/JOURNAL.md lists every text that a recording has.
std::vector<std::string> DocumentedTexts(const std::string& bytes) {
  const auto words = std::make_unique<std::uint64_t[]>(bytes.size() / 8 + 1);
  std::memcpy(words.get(), bytes.data(), bytes.size());
  faults::JournalView view;
  const char* const wrong = view.Open(words.get(), bytes.size());
  EXPECT_EQ(wrong, nullptr) << wrong;
  if (wrong != nullptr) return {};
  const faults::JournalHeader& header = view.header();
  std::vector<std::string> all = {std::string(header.magic, sizeof(header.magic)), header.tool_version, header.driver_path,
                                  header.device_name, header.world};
  for (std::size_t i = 0; i < view.modules().size(); ++i) {
    if (!view.ModulePath(i).empty()) all.emplace_back(view.ModulePath(i));
  }
  return all;
}

// Bytes of a number that stands before or behind a text may look like a part of it.
bool IsDocumented(const std::string& text, const std::vector<std::string>& documented) {
  return std::any_of(documented.begin(), documented.end(), [&](const std::string& one) {
    return one.find(text) != std::string::npos || (text.find(one) != std::string::npos && text.size() - one.size() < kShortestText);
  });
}

TEST(Record, HasNoDataOfTheProgram) {
  const std::string secret = "S3CRET~payload~of~somebody";
  const How how = {{"RECORDED_SECRET=" + secret}};
  const Recorded recorded = Record("secret keep -- ARGUMENT~of~somebody", {}, how);
  EXPECT_EQ(recorded.outcome.exit, 0) << recorded.outcome.err;
  const Recorded open = {TemporaryDirectory() + "/field.journal", {}};
  const CommandResult run = RunCommand({"/bin/sh", "-c",
                                        "eval \"$($0 record --print-environment --driver=sim --max-size 32MiB --journal " + open.file +
                                            ")\"\nexec " + Program("recorded") + " secret keep -- ARGUMENT~of~somebody",
                                        Tool()},
                                       how);
  EXPECT_EQ(run.exit, 0) << run.err;
  for (const std::string& file : {recorded.file, open.file}) {
    const std::string bytes = ReadFile(file);
    EXPECT_EQ(bytes.find(secret.substr(0, 4)), std::string::npos) << file << ": the word of the memset";
    EXPECT_EQ(bytes.find("somebody"), std::string::npos) << file;
    EXPECT_EQ(bytes.find("RECORDED"), std::string::npos) << file;
    const std::vector<std::string> documented = DocumentedTexts(bytes);
    for (const std::string& text : TextsOf(bytes)) EXPECT_TRUE(IsDocumented(text, documented)) << file << ": " << text;
    EXPECT_TRUE(IsDocumented(Program("recorded"), documented)) << "the test sees what is there";
    EXPECT_FALSE(IsDocumented("somebody's text", documented));
  }
  // The search finds what is there: an audit's journal, which nobody sends, has the words.
  const std::string work = TemporaryDirectory() + "/work";
  (void)RunAudit({"run", "--keep", "--records", "4096", "--work-dir", work}, {Program("recorded"), "secret"}, how);
  EXPECT_NE(ReadFile(work + "/run.journal").find(secret.substr(0, 8)), std::string::npos);
}

TEST(Record, GivesReportsInEveryFormat) {
  const Recorded recorded = Record("keep");
  const CommandResult json = Explain(recorded.file, {"--format", "json"});
  EXPECT_EQ(json.exit, 1) << json.err;
  const nlohmann::json report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["outcome"], "left");
  EXPECT_EQ(report["findings"].size(), 1U);
  EXPECT_THAT(report["findings"][0]["reproduce"].get<std::string>(), EndsWith("explain " + recorded.file));
  const CommandResult records = Explain(recorded.file, {"--every-record"});
  EXPECT_EQ(records.exit, 0) << records.err;
  EXPECT_THAT(records.out, HasSubstr("cuStreamCreate("));
}

}  // namespace
}  // namespace cuaudit::e2e::record_test
