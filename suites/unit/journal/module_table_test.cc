// SPDX-License-Identifier: MIT
// Modules of a forked child, which looks them up by address: one that lies where another lay, and one whose program headers lie elsewhere.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "faults/journal/module_table.h"

#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "suites/support/temporary_journal.h"

namespace cuaudit::faults::module_table_test {
namespace {

constexpr int kRight = 0;
constexpr int kWrong = 1;
constexpr int kElsewhere = 2;  // the loader put it at another address

// A large snapshot, in static storage as in the drop-in.
ModuleTable* Table() {
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
  Table()->Attach(&journal);
  Table()->Refresh();
  const pid_t child = fork();
  if (child == 0) {
    Table()->AfterFork();
    _exit(act(journal, one));
  }
  int status = 0;
  waitpid(child, &status, 0);
  dlclose(one);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kWrong;
}

bool IsNamed(Journal& journal, std::uintptr_t address, const std::string& path, bool with_build_id) {
  std::uint64_t frame = 0;
  Table()->Encode(&address, 1, &frame);
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
}  // namespace cuaudit::faults::module_table_test
