// SPDX-License-Identifier: MIT
// Files of a command, and its work directory.
#include "harness/process/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "harness/process/work_dir.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::files_test {
namespace {

std::ptrdiff_t EntriesOf(const TemporaryDir& dir) {
  return std::distance(std::filesystem::directory_iterator(dir.path()), std::filesystem::directory_iterator());
}

TEST(Files, WritesWholeFilesAndLeavesNoTemporaryName) {
  const TemporaryDir dir;
  ASSERT_TRUE(WriteFile(dir.File("a"), "first", Exit::Usage).ok());
  ASSERT_TRUE(WriteFile(dir.File("a"), "second", Exit::Usage).ok());
  EXPECT_EQ(*ReadFile(dir.File("a")), "second");
  EXPECT_EQ(EntriesOf(dir), 1);
}

TEST(Files, HonoursTheUmask) {
  const TemporaryDir dir;
  const mode_t before = umask(027);
  ASSERT_TRUE(WriteFile(dir.File("a"), "", Exit::Usage).ok());
  ASSERT_TRUE(WriteFile(dir.File("b"), "", Exit::Usage, 0600).ok());
  umask(before);
  struct stat facts = {};
  ASSERT_EQ(stat(dir.File("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0640U);
  ASSERT_EQ(stat(dir.File("b").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST(Files, ReadsNothingThatCouldBlockOrHasNoEnd) {
  const TemporaryDir dir;
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  for (const std::string& path : {dir.File("pipe"), dir.path(), std::string("/dev/zero")}) {
    EXPECT_EQ(ReadFile(path).status().message(), path + ": expected a regular file");
  }
  ASSERT_TRUE(WriteFile(dir.File("large"), std::string((1U << 20U) + 1, 'x'), Exit::Usage).ok());
  EXPECT_EQ(ReadFile(dir.File("large"), 1).status().message(), dir.File("large") + ": expected at most 1 MiB");
  EXPECT_TRUE(ReadFile(dir.File("large")).ok());
}

TEST(Files, AnswersTheGivenExitForAnUnwritablePlace) {
  const TemporaryDir dir;
  EXPECT_EQ(WriteFile(dir.File("none/a"), "x", Exit::Usage).exit(), Exit::Usage);
  EXPECT_EQ(WriteFile(dir.path(), "x", Exit::Failure).exit(), Exit::Failure);
  EXPECT_EQ(EntriesOf(dir), 0);
}

TEST(Files, WritesToADeviceWithoutReplacingIt) {
  ASSERT_TRUE(WriteFile("/dev/null", "x", Exit::Usage).ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(Files, WritesAllToAPipeThatSomebodyReads) {
  const TemporaryDir dir;
  const std::string path = dir.File("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const std::string bytes(std::size_t{1} << 20U, 'x');  // more than a pipe holds
  std::string got;
  std::thread reader([&] {
    const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char part[4096];
    for (ssize_t count = 0; (count = read(file.get(), part, sizeof(part))) > 0;) got.append(part, static_cast<std::size_t>(count));
  });
  const Status written = WriteFile(path, bytes, Exit::Usage);
  if (!written.ok()) close(open(path.c_str(), O_RDWR | O_CLOEXEC));  // the reader has nothing to wait for
  reader.join();
  EXPECT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(got.size(), bytes.size());
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(Files, APipeThatNobodyReadsIsAnError) {
  const TemporaryDir dir;
  const std::string path = dir.File("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Status written = WriteFile(path, "x", Exit::Usage);
  EXPECT_EQ(written.exit(), Exit::Usage);
  EXPECT_EQ(written.message(), path + ": cannot write: nobody reads from this pipe");
}

TEST(Files, FillsAnOpenFileByItsKernelName) {
  const TemporaryDir dir;
  const FileDescriptor file(open(dir.File("a").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::string name = "/proc/self/fd/" + std::to_string(file.get());
  ASSERT_TRUE(WriteFile(name, "x", Exit::Usage).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(name));
  EXPECT_EQ(*ReadFile(dir.File("a")), "x");
}

TEST(Files, WritesPlainFilesBelowDevLikeAnyOther) {
  std::string dir = "/dev/shm/cuaudit-test-XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) GTEST_SKIP() << "no writable /dev/shm";
  EXPECT_TRUE(WriteFile(dir + "/a", "x", Exit::Usage).ok());
  EXPECT_EQ(*ReadFile(dir + "/a"), "x");
  std::filesystem::remove_all(dir);
}

TEST(Files, ReplacesTheFileBehindALinkAndKeepsTheLink) {
  const TemporaryDir dir;
  ASSERT_TRUE(WriteFile(dir.File("a"), "first", Exit::Usage).ok());
  std::filesystem::create_symlink("a", dir.File("link"));
  ASSERT_TRUE(WriteFile(dir.File("link"), "second", Exit::Usage).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(dir.File("link")));
  EXPECT_EQ(*ReadFile(dir.File("a")), "second");
}

TEST(Files, MapsWhatIsThereAndRefusesTheRest) {
  const TemporaryDir dir;
  ASSERT_TRUE(WriteFile(dir.File("empty"), "", Exit::Usage).ok());
  ASSERT_TRUE(WriteFile(dir.File("full"), "abc", Exit::Usage).ok());
  const Result<SparseFile> empty = SparseFile::Open(dir.File("empty"));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->size(), 0U);
  const Result<SparseFile> full = SparseFile::Open(dir.File("full"));
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(std::string(static_cast<const char*>(full->data()), full->size()), "abc");
  EXPECT_FALSE(SparseFile::Open(dir.path()).ok());
  EXPECT_FALSE(SparseFile::Open(dir.File("none")).ok());
  ASSERT_EQ(mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(SparseFile::Open(dir.File("pipe")).ok()) << "nobody waits for a writer";
  EXPECT_EQ(LastLines(dir.File("pipe"), 2), "");
}

// The kernel says of its small files that they are a page long. The rest of the page is never read.
TEST(Files, AFileThatEndsBeforeItsSizeIsMappedAsFarAsItGoes) {
  constexpr const char* kCpus = "/sys/devices/system/cpu/online";
  const Result<std::string> text = ReadFile(kCpus);
  struct stat facts = {};
  if (!text.ok() || stat(kCpus, &facts) != 0 || static_cast<std::size_t>(facts.st_size) <= text->size()) GTEST_SKIP() << "no " << kCpus;
  const Result<SparseFile> file = SparseFile::Open(kCpus);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->size(), static_cast<std::size_t>(facts.st_size));
  const std::string_view bytes(static_cast<const char*>(file->data()), file->size());
  EXPECT_TRUE(bytes.starts_with(*text));
  EXPECT_EQ(bytes.find_first_not_of('\0', text->size()), std::string_view::npos);
}

TEST(Files, QuotesTheLastLinesOfALog) {
  const TemporaryDir dir;
  const std::string path = dir.File("log");
  EXPECT_EQ(LastLines(path, 2), "");
  ASSERT_TRUE(WriteFile(path, "", Exit::Failure).ok());
  EXPECT_EQ(LastLines(path, 2), "");
  ASSERT_TRUE(WriteFile(path, "one\ntwo\nthree\n", Exit::Failure).ok());
  EXPECT_EQ(LastLines(path, 2), "two\nthree\n");
  EXPECT_EQ(LastLines(path, 9), "one\ntwo\nthree\n");
  ASSERT_TRUE(WriteFile(path, "one\ntwo", Exit::Failure).ok());
  EXPECT_EQ(LastLines(path, 1), "two\n");
  ASSERT_TRUE(WriteFile(path, std::string(100000, 'x'), Exit::Failure).ok());
  EXPECT_LT(LastLines(path, 10).size(), 20000U);
}

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
}  // namespace cuaudit::harness::files_test
