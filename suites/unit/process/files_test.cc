// SPDX-License-Identifier: MIT
#include "harness/process/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

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
  umask(before);
  struct stat facts = {};
  ASSERT_EQ(stat(dir.File("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0640U);
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

}  // namespace
}  // namespace cuaudit::harness::files_test
