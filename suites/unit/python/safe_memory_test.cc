// SPDX-License-Identifier: MIT
#include "faults/python/safe_memory.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>

namespace cuaudit::python::safe_memory_test {
namespace {

constexpr std::size_t kPage = 4096;

class Pages : public ::testing::Test {
 protected:
  void SetUp() override {
    void* const memory = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    start_ = reinterpret_cast<std::uintptr_t>(memory);
    std::memset(memory, 7, 3 * kPage);
    ASSERT_EQ(munmap(static_cast<char*>(memory) + kPage, kPage), 0);
  }
  void TearDown() override {
    munmap(reinterpret_cast<void*>(start_), kPage);
    munmap(reinterpret_cast<void*>(start_ + 2 * kPage), kPage);
  }
  std::uintptr_t start_ = 0;
};

TEST_F(Pages, ReadsWhatIsThere) {
  SafeMemory memory;
  unsigned char bytes[16] = {};
  EXPECT_TRUE(memory.Read(start_ + 100, bytes, sizeof(bytes)));
  EXPECT_EQ(bytes[15], 7);
  EXPECT_TRUE(memory.Read(start_ + kPage - 16, bytes, sizeof(bytes)));
  EXPECT_TRUE(memory.Read(start_ + 2 * kPage, bytes, sizeof(bytes)));
}

TEST_F(Pages, RefusesWhatIsNotThere) {
  SafeMemory memory;
  char bytes[2 * kPage + 1];
  std::uint64_t word = 0;
  EXPECT_FALSE(memory.Read(start_ + kPage, &word));
  EXPECT_FALSE(memory.Read(start_ + kPage - 4, &word)) << "its end is missing";
  EXPECT_FALSE(memory.Read(start_ + 2 * kPage - 4, &word)) << "its beginning is missing";
  EXPECT_FALSE(memory.Read(start_, bytes, 2 * kPage + 1)) << "the page between is missing";
  EXPECT_FALSE(memory.Read(0, &word));
  EXPECT_FALSE(memory.Read(~std::uintptr_t{0} - 3, &word)) << "it would go round";
  EXPECT_FALSE(memory.Read(std::uintptr_t{1} << 62, &word)) << "no address at all";
  EXPECT_TRUE(memory.Read(start_ + kPage, &word, 0));
}

TEST_F(Pages, RefusesWhatMayNotBeRead) {
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(start_), kPage, PROT_NONE), 0);
  SafeMemory memory;
  std::uint64_t word = 0;
  EXPECT_FALSE(memory.Read(start_, &word));
}

TEST_F(Pages, LeavesErrnoAndTheSignalMaskAlone) {
  sigset_t before;
  sigset_t after;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  errno = ERANGE;
  {
    SafeMemory memory;
    std::uint64_t word = 0;
    EXPECT_TRUE(memory.Read(start_, &word));
    EXPECT_FALSE(memory.Read(start_ + kPage, &word));
  }
  EXPECT_EQ(errno, ERANGE);
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (int signal = 1; signal < 65; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

}  // namespace
}  // namespace cuaudit::python::safe_memory_test
