// SPDX-License-Identifier: MIT
#include "faults/journal/stack_table.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::stack_table_test {
namespace {

// The tables hold a large snapshot of modules: they live in static storage in the drop-in, and here.
StackTable* Table() {
  static StackTable table;
  return &table;
}

__attribute__((noinline)) std::uint32_t FromOnePlace(StackTable* table) {
  const std::uint32_t id = table->Capture();
  asm volatile("" ::: "memory");  // keeps this frame on the stack
  return id;
}

TEST(StackTable, SamePlaceSameIdOtherPlaceOtherId) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  Table()->Attach(&journal, false);
  std::uint32_t ids[2];
  int turns = 2;
  asm volatile("" : "+r"(turns));  // an unknown count: one call site, not two unrolled ones
  for (int i = 0; i < turns; ++i) ids[i] = FromOnePlace(Table());
  const std::uint32_t other = FromOnePlace(Table());
  EXPECT_NE(ids[0], 0u);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[0], other);

  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  const auto frames = view.Stack(ids[0]);
  ASSERT_GE(frames.size(), 3u);
  bool in_this_program = false;
  for (const std::uint64_t frame : frames) {
    in_this_program = in_this_program || view.ModulePath(FrameModule(frame)).ends_with("journal_test");
  }
  EXPECT_TRUE(in_this_program);
  EXPECT_FALSE(view.ModuleBuildId(FrameModule(frames[0])).empty());
}

TEST(StackTable, DepthZeroTakesNoStack) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  journal.header().stack_depth.store(0);
  Table()->Attach(&journal, false);
  EXPECT_EQ(Table()->Capture(), 0u);
}

TEST(StackTable, InternKeepsEveryDistinctStackOnceAndSaysWhenFull) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  journal.header().stack_depth.store(0);  // only the stacks given by hand
  Table()->Attach(&journal, false);
  for (std::uint64_t i = 0; i < kMaxStacks; ++i) {
    const std::uint64_t frames[2] = {i, 7};
    ASSERT_NE(Table()->Intern(frames, 2), 0u) << i;
  }
  const std::uint64_t known[2] = {5, 7};
  const std::uint64_t fresh[2] = {5, 8};
  EXPECT_NE(Table()->Intern(known, 2), 0u);
  EXPECT_EQ(journal.header().flags.load() & kStacksDropped, 0u);
  EXPECT_EQ(Table()->Intern(fresh, 2), 0u);
  EXPECT_NE(journal.header().flags.load() & kStacksDropped, 0u);
}

// As a process leaves it that stops between claiming a row and filling it.
TEST(StackTable, WhatAnotherProcessBeganIsCompleted) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  journal.header().stack_depth.store(0);  // only the stacks given by hand
  Table()->Attach(&journal, false);
  const std::uint64_t frames[2] = {5, 7};
  const std::uint32_t id = Table()->Intern(frames, 2);
  ASSERT_NE(id, 0u);
  StackRow& row = journal.stacks()[id - 1];
  row.depth.store(0);
  std::fill(std::begin(row.frame), std::end(row.frame), 0);

  EXPECT_EQ(Table()->Intern(frames, 2), id);
  EXPECT_EQ(row.depth.load(), 2u);
  EXPECT_EQ(row.frame[0], 5u);
  EXPECT_EQ(row.frame[1], 7u);
  EXPECT_EQ(journal.header().next_stack.load(), 1u) << "claimed once";
}

TEST(ModuleTable, AddressesOutsideEveryModuleSaySo) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  static ModuleTable modules;
  modules.Attach(&journal);
  modules.Refresh();
  int on_the_stack = 0;
  const std::uintptr_t addresses[] = {reinterpret_cast<std::uintptr_t>(&on_the_stack), reinterpret_cast<std::uintptr_t>(&CreateJournal), 0};
  std::uint64_t frames[3];
  modules.Encode(addresses, 3, frames);
  EXPECT_EQ(FrameModule(frames[0]), kNoModule);
  EXPECT_NE(FrameModule(frames[1]), kNoModule);
  EXPECT_EQ(FrameModule(frames[2]), kNoModule);
}

// glibc has this library and nobody links it.
TEST(ModuleTable, WhatAForkedChildLoadsHasItsModule) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  static ModuleTable modules;
  modules.Attach(&journal);
  modules.Refresh();
  modules.AfterFork();
  void* const library = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto late = reinterpret_cast<std::uintptr_t>(dlsym(library, "__ctype_get_mb_cur_max"));
  const std::uintptr_t addresses[] = {late, reinterpret_cast<std::uintptr_t>(&CreateJournal), 0};
  std::uint64_t frames[3];
  modules.Encode(addresses, 3, frames);
  dlclose(library);
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  EXPECT_TRUE(view.ModulePath(FrameModule(frames[0])).ends_with("libBrokenLocale.so.1")) << view.ModulePath(FrameModule(frames[0]));
  EXPECT_FALSE(view.ModuleBuildId(FrameModule(frames[0])).empty());
  EXPECT_TRUE(view.ModulePath(FrameModule(frames[1])).ends_with("journal_test"));
  EXPECT_EQ(FrameModule(frames[2]), kNoModule);
}

}  // namespace
}  // namespace cuaudit::faults::stack_table_test
