// SPDX-License-Identifier: MIT
// Tables that keep each call stack, and each Python function, once.
#include "faults/journal/stack_table.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "faults/journal/python_table.h"
#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::stack_table_test {
namespace {

// The tables hold a large snapshot of modules: they live in static storage in the drop-in, and here.
StackTable* OneTable() {
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
  OneTable()->Attach(&journal, false);
  std::uint32_t ids[2];
  int turns = 2;
  asm volatile("" : "+r"(turns));  // an unknown count: one call site, not two unrolled ones
  for (int i = 0; i < turns; ++i) ids[i] = FromOnePlace(OneTable());
  const std::uint32_t other = FromOnePlace(OneTable());
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
  OneTable()->Attach(&journal, false);
  EXPECT_EQ(OneTable()->Capture(), 0u);
}

TEST(StackTable, InternKeepsEveryDistinctStackOnceAndSaysWhenFull) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  journal.header().stack_depth.store(0);  // only the stacks given by hand
  OneTable()->Attach(&journal, false);
  for (std::uint64_t i = 0; i < kMaxStacks; ++i) {
    const std::uint64_t frames[2] = {i, 7};
    ASSERT_NE(OneTable()->Intern(frames, 2), 0u) << i;
  }
  const std::uint64_t known[2] = {5, 7};
  const std::uint64_t fresh[2] = {5, 8};
  EXPECT_NE(OneTable()->Intern(known, 2), 0u);
  EXPECT_EQ(journal.header().flags.load() & kStacksDropped, 0u);
  EXPECT_EQ(OneTable()->Intern(fresh, 2), 0u);
  EXPECT_NE(journal.header().flags.load() & kStacksDropped, 0u);
}

// As a process leaves it that stops between claiming a row and filling it.
TEST(StackTable, WhatAnotherProcessBeganIsCompleted) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  journal.header().stack_depth.store(0);  // only the stacks given by hand
  OneTable()->Attach(&journal, false);
  const std::uint64_t frames[2] = {5, 7};
  const std::uint32_t id = OneTable()->Intern(frames, 2);
  ASSERT_NE(id, 0u);
  StackRow& row = journal.stacks()[id - 1];
  row.depth.store(0);
  std::fill(std::begin(row.frame), std::end(row.frame), 0);

  EXPECT_EQ(OneTable()->Intern(frames, 2), id);
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

python::Function Named(const std::string& name, const std::string& file, int first_line) {
  python::Function function{};
  name.copy(function.name, sizeof(function.name) - 1);
  file.copy(function.file, sizeof(function.file) - 1);
  function.first_line = first_line;
  return function;
}

class Table : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(journal_.Open(file_.path()), nullptr);
    table_->Attach(&journal_);
  }
  TemporaryJournal file_{8};
  Journal journal_;
  std::unique_ptr<PythonTable> table_ = std::make_unique<PythonTable>();
};

TEST_F(Table, KeepsEveryFunctionOnce) {
  const python::Function step = Named("Encoder.step", "/encoder.py", 10);
  const std::uint64_t first = table_->Encode(step, 12);
  const std::uint64_t second = table_->Encode(step, 13);
  EXPECT_EQ(FrameModule(first), kPython);
  EXPECT_EQ(FramePythonLine(first), 12U);
  EXPECT_EQ(FramePythonLine(second), 13U);
  EXPECT_EQ(FramePythonRow(first), FramePythonRow(second));
  EXPECT_NE(FramePythonRow(first), FramePythonRow(table_->Encode(Named("Encoder.close", "/encoder.py", 10), 12)));
  EXPECT_NE(FramePythonRow(first), FramePythonRow(table_->Encode(Named("Encoder.step", "/decoder.py", 10), 12)));
  EXPECT_NE(FramePythonRow(first), FramePythonRow(table_->Encode(Named("Encoder.step", "/encoder.py", 11), 12))) << "defined twice";

  const std::vector<char> bytes = file_.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  const PythonRow* const row = view.PythonFunction(first);
  ASSERT_NE(row, nullptr);
  EXPECT_STREQ(row->name, "Encoder.step");
  EXPECT_STREQ(row->file, "/encoder.py");
  EXPECT_EQ(row->first_line, 10);
  EXPECT_EQ(view.PythonFunction(PythonFrame(kMaxPythonFunctions, 1)), nullptr);
}

TEST_F(Table, SaysWhenItIsFull) {
  std::set<std::uint64_t> rows;
  for (std::size_t i = 0; i < kMaxPythonFunctions; ++i)
    rows.insert(FramePythonRow(table_->Encode(Named(std::to_string(i), "/f.py", 1), 1)));
  EXPECT_EQ(rows.size(), kMaxPythonFunctions);
  EXPECT_EQ(journal_.header().flags.load() & kModulesDropped, 0U);
  const std::uint64_t more = table_->Encode(Named("one more", "/f.py", 1), 5);
  EXPECT_EQ(FramePythonRow(more), kMaxPythonFunctions);
  EXPECT_EQ(FramePythonLine(more), 5U);
  EXPECT_NE(journal_.header().flags.load() & kModulesDropped, 0U);
}

TEST_F(Table, RecallsWhatItWasToldOfAPlaceAndOfNoOther) {
  const python::Identity place = {0x1000, 0x1040, 0x2000, 0x3000, 0x4000, 7};
  std::uint64_t frame = 0;
  EXPECT_FALSE(table_->Recall(place, &frame));
  table_->Remember(place, PythonFrame(3, 9));
  ASSERT_TRUE(table_->Recall(place, &frame));
  EXPECT_EQ(frame, PythonFrame(3, 9));
  python::Identity other = place;
  other.instruction += 2;
  EXPECT_FALSE(table_->Recall(other, &frame)) << "another instruction";
  other = place;
  other.qualname = 0x3008;
  EXPECT_FALSE(table_->Recall(other, &frame)) << "another function at the same address";
  table_->Remember(other, 0);
  ASSERT_TRUE(table_->Recall(other, &frame));
  EXPECT_EQ(frame, 0U) << "left out";
}

}  // namespace
}  // namespace cuaudit::faults::stack_table_test
