// SPDX-License-Identifier: MIT
#include "faults/shim/thread_identity.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace cuaudit::faults::thread_identity_test {
namespace {

std::uint32_t RealTid() { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

// What `check` answers in a forked child.
template <typename Check>
bool InAChild(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadIdentity, IsOfEachThreadItsOwn) {
  EXPECT_EQ(Pid(), static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(Tid(), RealTid());
  std::thread([] {
    EXPECT_EQ(Pid(), static_cast<std::uint32_t>(getpid()));
    EXPECT_EQ(Tid(), RealTid());
  }).join();
}

TEST(ThreadIdentity, AForkedChildThatForgetsHasNamesOfItsOwn) {
  const std::uint32_t parent = Pid();
  EXPECT_TRUE(InAChild([parent] {
    thread_state.begin = 7;
    ForgetThread();
    return thread_state.begin == 0 && Pid() != parent && Pid() == static_cast<std::uint32_t>(getpid()) && Tid() == RealTid();
  }));
}

TEST(ThreadIdentity, AForkedChildThatGoesOnAsItsParentKeepsTheName) {
  const std::uint32_t parent = Pid();
  EXPECT_TRUE(InAChild([parent] {
    GoOnAsParent();
    ForgetThread();
    return Pid() == parent && Tid() == parent && NameOf(static_cast<std::uint32_t>(getpid())) == parent && NameOf(1) == 1;
  }));
}

}  // namespace
}  // namespace cuaudit::faults::thread_identity_test
