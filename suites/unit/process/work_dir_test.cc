// SPDX-License-Identifier: MIT
#include "harness/process/work_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::work_dir_test {
namespace {

using testing::HasSubstr;

TEST(WorkDir, MakesAFreshDirectoryAndRemovesItWithAllItHolds) {
  std::string path;
  {
    const Result<WorkDir> dir = WorkDir::Open("");
    ASSERT_TRUE(dir.ok()) << dir.status().message();
    EXPECT_TRUE(dir->fresh());
    path = dir->path();
    ASSERT_TRUE(WriteFile(dir->File("a"), "b", Exit::Failure).ok());
    dir->Remove();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A trial log of hundreds of megabytes in memory would be the memory of the programs that are swept.
TEST(WorkDir, OfNobodysChoiceIsOnADiskAndOnlyItsJournalsAreInMemory) {
  const char* const chosen = std::getenv("TMPDIR");
  const std::string before = chosen == nullptr ? "" : chosen;
  unsetenv("TMPDIR");
  for (const bool keep : {false, true}) {
    const Result<WorkDir> dir = WorkDir::Open("", true, keep);
    ASSERT_TRUE(dir.ok()) << dir.status().message();
    const bool any_disk = !WorkDir::InMemory("/tmp") || !WorkDir::InMemory("/var/tmp");
    EXPECT_EQ(WorkDir::InMemory(dir->path()), !any_disk) << dir->path();
    EXPECT_EQ(std::filesystem::path(dir->File("trials.jsonl")).parent_path(), dir->path());
    const std::string journals = std::filesystem::path(dir->Journal("1")).parent_path();
    EXPECT_TRUE(keep ? journals == dir->path() : journals == dir->path() || WorkDir::InMemory(journals)) << journals;
    dir->Remove();
    EXPECT_FALSE(std::filesystem::exists(dir->path()));
    EXPECT_FALSE(std::filesystem::exists(journals));
  }
  if (!before.empty()) setenv("TMPDIR", before.c_str(), 1);
}

TEST(WorkDir, TakesTheFirstPlaceThatIsOnADisk) {
  const TemporaryDir parent;
  ASSERT_TRUE(WriteFile(parent.File("file"), "", Exit::Failure).ok());
  const std::string disk = WorkDir::InMemory(parent.path()) ? "" : parent.path();
  const std::vector<std::string> places = {parent.File("none"), parent.File("file"), parent.path()};
  EXPECT_EQ(WorkDir::OnDisk(places), disk);
  EXPECT_EQ(WorkDir::OnDisk(std::vector<std::string>{parent.File("none")}), "");
  if (!WorkDir::InMemory("/dev/shm")) GTEST_SKIP() << "/dev/shm is no memory here";
  EXPECT_EQ(WorkDir::OnDisk(std::vector<std::string>{"/dev/shm", parent.path()}), disk);
  EXPECT_EQ(WorkDir::OnDisk(std::vector<std::string>{"/dev/shm"}), "");
}

TEST(WorkDir, NeverRemovesTheUsersDirectory) {
  const TemporaryDir parent;
  const Result<WorkDir> dir = WorkDir::Open(parent.File("work"));
  ASSERT_TRUE(dir.ok()) << dir.status().message();
  dir->Remove();
  EXPECT_TRUE(std::filesystem::exists(parent.File("work")));
}

TEST(WorkDir, LetsOneAtATimeIn) {
  const TemporaryDir parent;
  {
    const Result<WorkDir> first = WorkDir::Open(parent.File("work"));
    ASSERT_TRUE(first.ok());
    const Result<WorkDir> second = WorkDir::Open(parent.File("work"));
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().exit(), Exit::Usage);
    EXPECT_THAT(second.status().message(), HasSubstr("another cuaudit is using"));
  }
  EXPECT_TRUE(WorkDir::Open(parent.File("work")).ok());
}

// What a killed process leaves: the directory as it is, and no lock. A child ends without unwinding.
std::string LeaveOneBehind(const std::string& path, bool keep) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const Result<WorkDir> dir = WorkDir::Open(path, false, keep);
    const std::string text = dir.ok() && WriteFile(dir->File("trials.jsonl"), "x", Exit::Failure).ok() ? dir->path() : "";
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  waitpid(child, nullptr, 0);
  char text[4096];
  const ssize_t got = read(ends[0], text, sizeof(text));
  close(ends[0]);
  return got <= 0 ? std::string() : std::string(text, static_cast<std::size_t>(got));
}

class StaleWorkDir : public testing::Test {
 protected:
  void SetUp() override {
    const char* const before = std::getenv("TMPDIR");
    if (before != nullptr) before_ = before;
    setenv("TMPDIR", parent_.path().c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("TMPDIR");
    } else {
      setenv("TMPDIR", before_.c_str(), 1);
    }
  }
  const TemporaryDir parent_;
  std::string before_;
};

TEST_F(StaleWorkDir, OfAKilledRunIsRemoved) {
  const std::string path = LeaveOneBehind("", false);
  ASSERT_TRUE(std::filesystem::exists(path + "/trials.jsonl")) << path;
  EXPECT_EQ(WorkDir::RemoveStale(), 1U);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(WorkDir::RemoveStale(), 0U);
}

TEST_F(StaleWorkDir, OfARunThatLivesIsNotTouched) {
  const Result<WorkDir> dir = WorkDir::Open("");
  ASSERT_TRUE(dir.ok());
  EXPECT_EQ(WorkDir::RemoveStale(), 0U);
  EXPECT_TRUE(std::filesystem::exists(dir->File("lock")));
}

TEST_F(StaleWorkDir, ThatTheUserNamedOrKeepsIsTheUsers) {
  const std::string kept = LeaveOneBehind("", true);
  const std::string named = LeaveOneBehind(parent_.File("cuaudit-mine12"), false);
  const std::string taken = LeaveOneBehind("", false);
  EXPECT_EQ(LeaveOneBehind(taken, false), taken) << "--work-dir: a killed run to go on with";
  std::filesystem::create_directory(parent_.File("cuaudit-others"));
  EXPECT_EQ(WorkDir::RemoveStale(), 0U);
  for (const std::string& path : {kept, named, taken, parent_.File("cuaudit-others")}) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST_F(StaleWorkDir, IsRemovedFromWhereItIsAndNotThroughALink) {
  const TemporaryDir elsewhere;
  setenv("TMPDIR", elsewhere.path().c_str(), 1);
  const std::string path = LeaveOneBehind("", false);
  setenv("TMPDIR", parent_.path().c_str(), 1);
  std::filesystem::create_directory_symlink(path, parent_.File("cuaudit-linked"));
  EXPECT_EQ(WorkDir::RemoveStale(), 0U);
  EXPECT_TRUE(std::filesystem::exists(path + "/lock"));
}

TEST_F(StaleWorkDir, AreRemovedAFewAtATime) {
  const std::string one = LeaveOneBehind("", false);
  for (int i = 0; i < 70; ++i) std::filesystem::copy(one, parent_.File("cuaudit-copy" + std::to_string(i)));
  EXPECT_EQ(WorkDir::RemoveStale(), 64U);
  EXPECT_EQ(WorkDir::RemoveStale(), 7U);
}

TEST(WorkDir, RefusesWhatIsNoUsableDirectory) {
  const TemporaryDir parent;
  ASSERT_TRUE(WriteFile(parent.File("file"), "", Exit::Failure).ok());
  for (const std::string& path : {parent.File("file"), parent.File("none/below"), parent.File("a;b"), std::string("/proc")}) {
    const Result<WorkDir> dir = WorkDir::Open(path);
    ASSERT_FALSE(dir.ok()) << path;
    EXPECT_EQ(dir.status().exit(), Exit::Usage) << path;
  }
}

}  // namespace
}  // namespace cuaudit::harness::work_dir_test
