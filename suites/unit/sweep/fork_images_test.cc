// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_images.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>

#include "faults/driver/call_id.h"
#include "faults/journal/journal_view.h"
#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::fork_images_test {
namespace {

// What whoever has the journal counts in its header.
template <typename T>
void Count(const std::string& journal, std::size_t at) {
  const FileDescriptor file(open(journal.c_str(), O_WRONLY | O_CLOEXEC));
  const T one = 1;
  ASSERT_EQ(pwrite(file.get(), &one, sizeof(one), static_cast<off_t>(at)), static_cast<ssize_t>(sizeof(one)));
}

TEST(ForkImages, TellWhetherTheDriverWasCalledAndAreNewForTheNext) {
  const TemporaryDir dir;
  const std::string name = dir.File("forks-1");
  const std::string second = name + "-0002.journal";
  EXPECT_EQ(ForkImages::Trunk(name), name + "-0000.journal");
  {
    ForkImages images;
    ASSERT_TRUE(images.Make(name, 2, {}).ok());
    EXPECT_FALSE(images.Called(1));
    Count<std::uint64_t>(second, offsetof(faults::JournalHeader, next_record));
    EXPECT_FALSE(images.Called(1)) << "it wrote something, and called nothing";
    const std::size_t last = offsetof(faults::JournalHeader, occurrences) + (driver::kBaseCount - 1) * sizeof(std::uint32_t);
    Count<std::uint32_t>(second, last);
    EXPECT_TRUE(images.Called(1));
    EXPECT_FALSE(images.Called(0));
    ASSERT_TRUE(images.Renew(1).ok());
    EXPECT_FALSE(images.Called(1));
    EXPECT_EQ(access((name + "-0001.journal").c_str(), F_OK), 0);
    EXPECT_NE(access((name + "-0003.journal").c_str(), F_OK), 0);
  }
  EXPECT_NE(access(second.c_str(), F_OK), 0);
}

TEST(ForkImages, AreThereAgainWhenAProgramRemovedThem) {
  const TemporaryDir dir;
  const std::string name = dir.File("forks-1");
  ForkImages images;
  ASSERT_TRUE(images.Make(name, 70, {}).ok());  // more than stay open
  for (const std::uint32_t slot : {0U, 69U}) {
    const std::string journal = name + (slot == 0 ? "-0001.journal" : "-0046.journal");
    ASSERT_EQ(unlink(journal.c_str()), 0);
    EXPECT_FALSE(images.Called(slot));
    ASSERT_TRUE(images.Renew(slot).ok());
    EXPECT_EQ(access(journal.c_str(), F_OK), 0);
    Count<std::uint32_t>(journal, offsetof(faults::JournalHeader, occurrences));
    EXPECT_TRUE(images.Called(slot));
  }
}

TEST(ForkImages, WhatTheHostWasAskedForIsNoCallOfTheDriver) {
  const TemporaryDir dir;
  const std::string name = dir.File("forks-1");
  ForkImages images;
  ASSERT_TRUE(images.Make(name, 1, {}).ok());
  for (const std::size_t host : {faults::kHostOccurrences, faults::kHostThreadOccurrences, faults::kHostRecords}) {
    Count<std::uint32_t>(name + "-0001.journal", offsetof(faults::JournalHeader, occurrences) + host * sizeof(std::uint32_t));
  }
  EXPECT_FALSE(images.Called(0));
}

}  // namespace
}  // namespace cuaudit::harness::fork_images_test
