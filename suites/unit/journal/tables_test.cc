// SPDX-License-Identifier: MIT
// The tables of a journal: call stacks and Python functions, each kept once, and the modules of a process.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "faults/journal/interpreted_stack.h"
#include "faults/journal/module_table.h"
#include "faults/journal/stack_table.h"
#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::tables_test {
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

__attribute__((noinline)) std::uint32_t From(StackTable* table, std::size_t callers) {
  const std::uint32_t id = table->Capture(__builtin_frame_address(0), callers);
  asm volatile("" ::: "memory");
  return id;
}

TEST(StackTable, FramesAroundTheGivenOneAreLeftOut) {
  TemporaryJournal file(8);
  Journal journal;
  ASSERT_EQ(journal.Open(file.path()), nullptr);
  OneTable()->Attach(&journal, false);
  std::uint32_t ids[3];
  std::size_t turns = 3;
  asm volatile("" : "+r"(turns));
  for (std::size_t callers = 0; callers < turns; ++callers) ids[callers] = From(OneTable(), callers);
  const std::vector<char> bytes = file.Bytes();
  JournalView view;
  ASSERT_EQ(view.Open(bytes.data(), bytes.size()), nullptr);
  const auto whole = view.Stack(ids[0]);
  ASSERT_GE(whole.size(), 3U);
  for (std::size_t callers = 1; callers < turns; ++callers) {
    const auto frames = view.Stack(ids[callers]);
    ASSERT_FALSE(frames.empty());
    EXPECT_EQ(frames[0], whole[callers]);
  }
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

// Another place that is kept where this one would be.
TEST_F(Table, APlaceThatIsNotKeptHasNoFrame) {
  constexpr std::uintptr_t kPlaces = 8192;  // far more than are kept
  for (std::uintptr_t i = 0; i < kPlaces; ++i) table_->Remember({0x1000, 0x1040 + 2 * i, 0x2000, 0x3000, 0x4000, 7}, PythonFrame(3, 9));
  for (std::uintptr_t i = 0; i < kPlaces; ++i) {
    std::uint64_t frame = 0;
    EXPECT_FALSE(table_->Recall({0x5000, 0x5040 + 2 * i, 0x2000, 0x3000, 0x4000, 7}, &frame));
    ASSERT_EQ(frame, 0U) << i;
  }
}

// Modules of a forked child, which looks them up by address: one that lies where another lay, and one whose program headers lie elsewhere.

constexpr int kRight = 0;
constexpr int kWrong = 1;
constexpr int kElsewhere = 2;  // the loader put it at another address

// A large snapshot, in static storage as in the drop-in.
ModuleTable* OnlyTable() {
  static ModuleTable table;
  return &table;
}

std::uintptr_t FunctionOf(void* library) { return library == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(dlsym(library, "loaded")); }

// What a child of this process says that has `one` loaded, and it in its table.
int InAChildWithOne(const std::function<int(Journal& journal, void* one)>& act) {
  TemporaryJournal file(8);
  Journal journal;
  if (journal.Open(file.path()) != nullptr) return kWrong;
  void* const one = dlopen(CUAUDIT_LOADED_ONE, RTLD_NOW);
  if (one == nullptr) return kWrong;
  OnlyTable()->Attach(&journal);
  OnlyTable()->Refresh();
  const pid_t child = fork();
  if (child == 0) {
    OnlyTable()->AfterFork();
    _exit(act(journal, one));
  }
  int status = 0;
  waitpid(child, &status, 0);
  dlclose(one);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kWrong;
}

bool IsNamed(Journal& journal, std::uintptr_t address, const std::string& path, bool with_build_id) {
  std::uint64_t frame = 0;
  OnlyTable()->Encode(&address, 1, &frame);
  if (FrameModule(frame) == kNoModule) return false;
  const ModuleRow& row = journal.modules()[FrameModule(frame)];
  return path.ends_with(row.path) && row.path[0] != '\0' && (row.build_id_bytes != 0) == with_build_id;
}

class ForkedModules : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef DLFO_STRUCT_HAS_EH_DBASE
    GTEST_SKIP() << "this C library cannot look an object up without a lock";
#endif
  }
};

TEST_F(ForkedModules, ALibraryHasItsOwnNameWhereAnotherLayBefore) {
  const int said = InAChildWithOne([](Journal& journal, void* one) {
    const std::uintptr_t before = FunctionOf(one);
    if (!IsNamed(journal, before, CUAUDIT_LOADED_ONE, true)) return kWrong;
    dlclose(one);
    const std::uintptr_t after = FunctionOf(dlopen(CUAUDIT_LOADED_TWO, RTLD_NOW));
    if (after != before) return kElsewhere;
    return IsNamed(journal, after, CUAUDIT_LOADED_TWO, true) ? kRight : kWrong;
  });
  if (said == kElsewhere) GTEST_SKIP() << "the loader put it elsewhere";
  EXPECT_EQ(said, kRight);
}

TEST_F(ForkedModules, ALibraryWhoseProgramHeadersLieBehindItsFirstPageHasANameAndNoBuildId) {
  std::ifstream in(CUAUDIT_LOADED_TWO, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ElfW(Ehdr) header;
  ASSERT_GT(bytes.size(), sizeof(header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string headers = bytes.substr(header.e_phoff, header.e_phnum * sizeof(ElfW(Phdr)));
  bytes.resize((bytes.size() + (std::size_t{1} << 20U)) / 4096 * 4096);  // far behind all that is mapped
  header.e_phoff = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes += headers;
  char path[] = "/tmp/cuaudit-moved-headers-XXXXXX.so";
  const int file = mkstemps(path, 3);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(file);
  const std::string moved = path;
  EXPECT_EQ(InAChildWithOne([&](Journal& journal, void*) {
              const std::uintptr_t address = FunctionOf(dlopen(moved.c_str(), RTLD_NOW));
              return address != 0 && IsNamed(journal, address, moved, false) ? kRight : kWrong;
            }),
            kRight);
  unlink(path);
}

}  // namespace
}  // namespace cuaudit::faults::tables_test
