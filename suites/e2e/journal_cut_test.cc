// SPDX-License-Identifier: MIT
// A journal that was cut anywhere, or is no journal: `explain` says so in one line, status 2, and does not crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "faults/journal/layout.h"
#include "suites/support/tool.h"

namespace cuaudit::e2e::journal_cut_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  const Outcome run = RunCommand({Tool(), "explain", JournalOf("client_linked")});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("cuMemcpyDtoH_v2("));
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
    const Outcome run = RunCommand({Tool(), "explain", cut_journal});
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
    const Outcome run = RunCommand({Tool(), "explain", directory + name});
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
    const Outcome run = RunCommand({Tool(), "explain", journal + ".changed"});
    EXPECT_EQ(run.signal, 0) << "byte " << at;
    EXPECT_THAT(run.exit, ::testing::AnyOf(0, 2)) << "byte " << at << run.err;
  }
}

TEST(Explain, TheJournalOfAProgramKilledInMidFlightIsReadable) {
  const std::string directory = TemporaryDirectory() + "/work";
  const Audit audit =
      RunAudit({"replay", "--keep", "--work-dir", directory, "--fault", "cuMemAlloc#1=OUT_OF_MEMORY,refuse"}, {Program("hostile"), "kill"});
  EXPECT_EQ(audit.verdicts(), R"({"crash":1})") << audit.outcome.err;
  const Outcome found = RunCommand({"/bin/sh", "-c", "ls " + directory + "/*.journal"});
  std::size_t injected = 0;
  for (const std::string& path : Words(found.out)) {
    const Outcome run = RunCommand({Tool(), "explain", path});
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
}  // namespace cuaudit::e2e::journal_cut_test
