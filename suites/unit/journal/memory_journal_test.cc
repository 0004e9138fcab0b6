// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "faults/journal/journal_file.h"
#include "faults/journal/stack_table.h"

namespace cuaudit::faults::memory_journal_test {
namespace {

void Append(Journal* journal, std::uint16_t call) {
  Record* const record = journal->Begin();
  ASSERT_NE(record, nullptr);
  record->kind = RecordKind::Call;
  record->call = call;
  journal->Finish(record);
}

TEST(MemoryJournal, ReadsWhatWasAppended) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, false), nullptr);
  Append(memory.journal(), 7);
  Append(memory.journal(), 8);
  const JournalView view = memory.View();
  ASSERT_EQ(view.records().size(), 2U);
  EXPECT_EQ(view.records()[1].call, 8);
  EXPECT_EQ(view.Part(1, 1).records()[0].call, 8);
}

TEST(MemoryJournal, IsAsNewAfterClear) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, false), nullptr);
  JournalHeader& header = memory.journal()->header();
  for (int i = 0; i < 5000; ++i) {
    Record* const record = memory.journal()->Begin();
    if (record != nullptr) memory.journal()->Finish(record);
  }
  header.fired[3].store(1);
  header.matched[3].store(1);
  header.occurrences[5].store(1);
  header.cycle.store(2);
  header.phase.store(2);
  EXPECT_NE(header.flags.load() & kRecordsDropped, 0U);
  memory.Clear();
  EXPECT_TRUE(memory.View().records().empty());
  EXPECT_EQ(header.flags.load() & kRecordsDropped, 0U);
  EXPECT_EQ(header.fired[3].load() + header.matched[3].load() + header.occurrences[5].load() + header.cycle.load() + header.phase.load(),
            0U);
  Record* const first = memory.journal()->Begin();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->begin, 1U);
  EXPECT_EQ(first->end, 0U);
}

TEST(MemoryJournal, IsDrainedAndFilledAgain) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, false), nullptr);
  std::vector<Record> records;
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint16_t i = 0; i < 3000; ++i) Append(memory.journal(), i);
    records.clear();
    EXPECT_EQ(memory.Drain(&records), 0U);
    ASSERT_EQ(records.size(), 3000U);
    EXPECT_EQ(records.front().call, 0);
    EXPECT_EQ(records.front().begin, round * 6000 + 1) << "the clock goes on";
    EXPECT_EQ(records.back().call, 2999);
    EXPECT_TRUE(memory.View().records().empty());
  }
}

TEST(MemoryJournal, SaysOnceHowManyRecordsWereDropped) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, false), nullptr);
  for (int i = 0; i < 5000; ++i) {
    Record* const record = memory.journal()->Begin();
    if (record != nullptr) memory.journal()->Finish(record);
  }
  std::vector<Record> records;
  EXPECT_EQ(memory.Drain(&records), 5000U - 4096U);
  EXPECT_EQ(records.size(), 4096U);
  Append(memory.journal(), 7);
  records.clear();
  EXPECT_EQ(memory.Drain(&records), 0U);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].call, 7);
  EXPECT_EQ(memory.journal()->header().flags.load() & kRecordsDropped, 0U);
}

TEST(MemoryJournal, ACallUnderWayIsDrainedWhenItHasReturned) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, false), nullptr);
  Append(memory.journal(), 1);
  Record* const under_way = memory.journal()->Begin();
  ASSERT_NE(under_way, nullptr);
  under_way->kind = RecordKind::Call;
  under_way->call = 2;
  Append(memory.journal(), 3);
  std::vector<Record> records;
  EXPECT_EQ(memory.Drain(&records), 0U);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].call, 1);
  EXPECT_EQ(records[1].call, 3);
  Append(memory.journal(), 4);  // behind it
  records.clear();
  EXPECT_EQ(memory.Drain(&records), 0U);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].call, 4);
  memory.journal()->Finish(under_way);
  records.clear();
  EXPECT_EQ(memory.Drain(&records), 0U);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].call, 2);
  EXPECT_TRUE(memory.View().records().empty());
  Append(memory.journal(), 5);
  EXPECT_EQ(memory.View().records().size(), 1U) << "the room is used again";
}

TEST(MemoryJournal, NothingIsLostWhileOthersAppend) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 1 << 16}, false), nullptr);
  constexpr int kThreads = 3;
  constexpr std::uint64_t kEach = 15000;
  std::vector<std::thread> threads;
  for (std::uint16_t which = 0; which < kThreads; ++which) {
    threads.emplace_back([&memory, which] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        Record* const record = memory.journal()->Begin();
        ASSERT_NE(record, nullptr);
        record->call = which;
        record->argument[0] = i;
        memory.journal()->Finish(record);
      }
    });
  }
  std::vector<Record> records;
  while (records.size() < kThreads * kEach / 2) ASSERT_EQ(memory.Drain(&records), 0U);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.Drain(&records), 0U);
  ASSERT_EQ(records.size(), kThreads * kEach);
  std::uint64_t next[kThreads] = {};
  std::set<std::uint64_t> tickets;
  for (const Record& record : records) {
    ASSERT_LT(record.call, kThreads);
    next[record.call] += 1 + record.argument[0];
    tickets.insert(record.begin);
  }
  for (const std::uint64_t sum : next) EXPECT_EQ(sum, kEach * (kEach + 1) / 2);
  EXPECT_EQ(tickets.size(), records.size());
}

TEST(MemoryJournal, KeepsCallStacksOverClear) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, false), nullptr);
  auto stacks = std::make_unique<StackTable>();
  stacks->Attach(memory.journal(), false);
  const std::uint32_t id = stacks->Capture();
  const auto before = memory.View().Stack(id);
  const std::vector<std::uint64_t> frames(before.begin(), before.end());
  ASSERT_FALSE(frames.empty());
  Append(memory.journal(), 7);
  memory.Clear();
  const auto after = memory.View().Stack(id);
  EXPECT_EQ(std::vector<std::uint64_t>(after.begin(), after.end()), frames);
}

[[gnu::noinline]] std::uint32_t Inner(StackTable* stacks) {
  const std::uint32_t id = stacks->Capture();
  asm volatile("" ::: "memory");  // the call above is no tail call
  return id;
}

[[gnu::noinline]] std::uint32_t Bottom(StackTable* stacks) {
  stacks->StartAt(__builtin_frame_address(0));
  const std::uint32_t id = Inner(stacks);
  stacks->StartAt(nullptr);
  return id;
}

[[gnu::noinline]] std::uint32_t Deeper(StackTable* stacks) {
  const std::uint32_t id = Bottom(stacks);
  asm volatile("" ::: "memory");
  return id;
}

TEST(StackTable, StacksThatStartAtAFrameAreAlikeFromEverywhere) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096, .stack_depth = kMaxFrames}, false), nullptr);
  auto stacks = std::make_unique<StackTable>();
  stacks->Attach(memory.journal(), false);
  const std::uint32_t near = Bottom(stacks.get());
  const std::uint32_t far = Deeper(stacks.get());
  EXPECT_EQ(near, far);
  const std::uint32_t whole = Inner(stacks.get());
  EXPECT_NE(whole, near);
  EXPECT_GT(memory.View().Stack(whole).size(), memory.View().Stack(near).size());
  EXPECT_GE(memory.View().Stack(near).size(), 2U);
}

TEST(MemoryJournal, SharedOnesAreWrittenByChildren) {
  MemoryJournal memory;
  ASSERT_EQ(memory.Open({.record_capacity = 4096}, true), nullptr);
  const pid_t child = fork();
  if (child == 0) {
    Record* const record = memory.journal()->Begin();
    record->call = 9;
    memory.journal()->Finish(record);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(memory.View().records().size(), 1U);
  EXPECT_EQ(memory.View().records()[0].call, 9);
}

TEST(MemoryJournal, RefusesOptionsOutOfRange) {
  MemoryJournal memory;
  EXPECT_STREQ(memory.Open({.record_capacity = 0}, false), "journal options out of range");
}

}  // namespace
}  // namespace cuaudit::faults::memory_journal_test
