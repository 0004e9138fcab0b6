// SPDX-License-Identifier: MIT
#include "faults/journal/memory_journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "faults/journal/stack_table.h"

namespace cuaudit::faults {
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
}  // namespace cuaudit::faults
