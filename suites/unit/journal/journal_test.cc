// SPDX-License-Identifier: MIT
#include "faults/journal/journal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::journal_test {
namespace {

void Append(Journal* journal, std::uint16_t call) {
  Record* record = journal->Begin();
  ASSERT_NE(record, nullptr);
  record->kind = RecordKind::Call;
  record->call = call;
  journal->Finish(record);
}

TEST(Journal, RecordsComeBackInOrder) {
  TemporaryJournal file;
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  for (std::uint16_t i = 0; i < 100; ++i) Append(&journal, i);
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  ASSERT_EQ(view.records().size(), 100u);
  for (std::uint16_t i = 0; i < 100; ++i) {
    EXPECT_EQ(view.records()[i].call, i);
    EXPECT_EQ(view.records()[i].begin, 2u * i + 1);
    EXPECT_EQ(view.records()[i].end, 2u * i + 2);
  }
  EXPECT_FALSE(view.truncated());
}

TEST(Journal, SurvivesSigkillOfItsWriter) {
  TemporaryJournal file;
  const pid_t child = fork();
  if (child == 0) {
    Journal journal;
    if (journal.Open(file.path()) != nullptr) _exit(1);
    for (std::uint16_t i = 0; i < 10; ++i) Append(&journal, i);
    Record* open = journal.Begin();
    open->kind = RecordKind::Call;
    open->call = 99;
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  ASSERT_EQ(view.records().size(), 11u);
  EXPECT_NE(view.records()[9].end, 0u);
  EXPECT_EQ(view.records()[10].call, 99u);
  EXPECT_EQ(view.records()[10].end, 0u) << "a call that did not return must show as such";
}

TEST(Journal, ThreadsAndProcessesShareOneClock) {
  constexpr int kEach = 2000;
  TemporaryJournal file(4 * kEach);
  const auto write = [&] {
    Journal journal;
    ASSERT_EQ(journal.Open(file.path()), nullptr);
    std::thread other([&] {
      for (int i = 0; i < kEach; ++i) Append(&journal, 1);
    });
    for (int i = 0; i < kEach; ++i) Append(&journal, 2);
    other.join();
  };
  const pid_t child = fork();
  if (child == 0) {
    write();
    _exit(0);
  }
  write();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  ASSERT_EQ(view.records().size(), 4u * kEach);
  std::set<std::uint64_t> tickets;
  for (const Record& record : view.records()) {
    EXPECT_LT(record.begin, record.end);
    tickets.insert(record.begin);
    tickets.insert(record.end);
  }
  EXPECT_EQ(tickets.size(), 8u * kEach);
}

TEST(Journal, FullJournalDropsAndCounts) {
  TemporaryJournal file(10);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  for (int i = 0; i < 10; ++i) Append(&journal, 1);
  EXPECT_EQ(journal.Begin(), nullptr);
  EXPECT_EQ(journal.Begin(), nullptr);
  EXPECT_EQ(journal.header().dropped.load(), 2u);
  EXPECT_TRUE(journal.header().flags.load() & kRecordsDropped);
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(view.records().size(), 10u);
}

TEST(Journal, AProcessThatDidNotReserveNeverGetsASlotWithoutStorage) {
  TemporaryJournal file(100'000);
  Journal first;
  Journal second;  // as another process sees the same file
  ASSERT_EQ(first.Open(file.path()), nullptr);
  ASSERT_EQ(second.Open(file.path()), nullptr);
  first.header().flags.fetch_or(kNoSpace);  // from here on nobody can reserve more
  const std::uint64_t reserved = first.header().reserved.load();
  std::uint64_t given = 0;
  for (std::uint64_t i = 0; i < reserved + 100; ++i) given += (i % 2 == 0 ? first : second).Begin() != nullptr;
  EXPECT_EQ(given, reserved);
  EXPECT_EQ(first.header().dropped.load(), 100u);
}

TEST(Journal, CutAtAnyByteIsRefusedOrReadUpToTheCut) {
  TemporaryJournal file(64);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  for (std::uint16_t i = 0; i < 40; ++i) Append(&journal, i);
  const std::size_t records_at = journal.header().records_offset;
  const std::vector<char> whole = file.Bytes();
  std::vector<std::size_t> cuts;
  for (std::size_t i = 0; i <= sizeof(JournalHeader) + 8; ++i) cuts.push_back(i);
  for (std::size_t i = sizeof(JournalHeader); i < records_at; i += 100'003) cuts.push_back(i);
  for (std::size_t i = records_at; i <= records_at + 41 * sizeof(Record); ++i) cuts.push_back(i);
  for (const std::size_t cut : cuts) {
    JournalView view;
    const char* error = view.Open(whole.data(), cut);
    if (cut < sizeof(JournalHeader)) {
      EXPECT_NE(error, nullptr) << cut;
      continue;
    }
    ASSERT_EQ(error, nullptr) << cut;
    EXPECT_TRUE(view.truncated()) << cut;
    const std::size_t room = cut > records_at ? (cut - records_at) / sizeof(Record) : 0;
    EXPECT_EQ(view.records().size(), std::min<std::size_t>(room, 40)) << cut;
  }
}

TEST(Journal, RefusesWhatIsNoJournal) {
  TemporaryJournal file(8);
  std::vector<char> bytes = file.Bytes();
  JournalView view;
  bytes[0] = 'X';
  EXPECT_NE(view.Open(bytes.data(), bytes.size()), nullptr);
  bytes = file.Bytes();
  reinterpret_cast<JournalHeader*>(bytes.data())->version = kJournalVersion + 1;
  const char* const wrong = view.Open(bytes.data(), bytes.size());
  ASSERT_NE(wrong, nullptr);
  EXPECT_NE(std::string(wrong).find("expected version " + std::to_string(kJournalVersion) + ")"), std::string::npos) << wrong;
  bytes = file.Bytes();
  reinterpret_cast<JournalHeader*>(bytes.data())->table_digest ^= 1;
  EXPECT_NE(view.Open(bytes.data(), bytes.size()), nullptr);
  bytes = file.Bytes();
  reinterpret_cast<JournalHeader*>(bytes.data())->driver_path[255] = '/';
  EXPECT_NE(view.Open(bytes.data(), bytes.size()), nullptr) << "whoever reads the path would read on";
  bytes = file.Bytes();
  reinterpret_cast<JournalHeader*>(bytes.data())->stacks_offset = ~0ULL;
  EXPECT_NE(view.Open(bytes.data(), bytes.size()), nullptr);
  EXPECT_TRUE(view.records().empty());
}

TEST(Journal, OpenRefusesMissingAndForeignFiles) {
  Journal journal;
  EXPECT_NE(journal.Open("/nonexistent/journal"), nullptr);
  EXPECT_NE(journal.Open("/proc/self/exe"), nullptr);
  EXPECT_FALSE(journal.is_open());
}

TEST(JournalFile, RefusesOptionsOutOfRangeAndUnwritablePlaces) {
  EXPECT_NE(CreateJournal("/nonexistent/journal", {}), nullptr);
  EXPECT_NE(CreateJournal("/tmp/cuaudit-never", {0, 16}), nullptr);
  EXPECT_NE(CreateJournal("/tmp/cuaudit-never", {16, kMaxFrames + 1}), nullptr);
  EXPECT_NE(access("/tmp/cuaudit-never", F_OK), 0);
}

}  // namespace
}  // namespace cuaudit::faults::journal_test
