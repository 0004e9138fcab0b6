// SPDX-License-Identifier: MIT
// Writes to a pipe that is full.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "harness/process/files.h"
#include "harness/process/process.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness::pipes_test {
namespace {

// A pipe that holds one page, and its reading end.
struct OnePage {
  OnePage() {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    reader = FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    size = fcntl(reader.get(), F_SETPIPE_SZ, 1);
  }
  const TemporaryDir dir;
  const std::string path = dir.File("pipe");
  FileDescriptor reader;
  int size = 0;
};

TEST(Pipes, APipeWhoseReaderTakesNothingIsAnError) {
  const OnePage pipe;
  const Status written = WriteFile(pipe.path, std::string(static_cast<std::size_t>(pipe.size) + 1, 'x'), Exit::Usage, 0666, {});
  EXPECT_EQ(written.exit(), Exit::Failure);
  EXPECT_EQ(written.message(), pipe.path + ": cannot write: its reader has taken nothing for 0 seconds");
  EXPECT_EQ(kPatience, std::chrono::minutes(5));
}

// Takes a page only when the pipe is full, so that the writer has to wait for each.
std::string Taken(const OnePage& pipe, std::size_t all, const std::atomic<bool>& written) {
  std::string got;
  while (got.size() < all) {
    std::string part(std::min(static_cast<std::size_t>(pipe.size), all - got.size()), '\0');
    int waiting = 0;
    while (static_cast<std::size_t>(waiting) < part.size() && !written) {
      ioctl(pipe.reader.get(), FIONREAD, &waiting);
      std::this_thread::yield();
    }
    const ssize_t count = read(pipe.reader.get(), part.data(), part.size());
    if (count <= 0) break;
    got.append(part, 0, static_cast<std::size_t>(count));
  }
  return got;
}

TEST(Pipes, ASlowReaderOfAPipeGetsEveryByte) {
  const OnePage pipe;
  std::string bytes;
  for (int i = 0; i < 10 * pipe.size + 1; ++i) bytes += static_cast<char>('a' + i / 7 % 26);
  std::string got;
  std::atomic<bool> written = false;
  std::thread reader([&] { got = Taken(pipe, bytes.size(), written); });
  const Status status = WriteFile(pipe.path, bytes, Exit::Usage);
  written = true;
  reader.join();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got, bytes);
}

TEST(Pipes, APipeThatTheToolWasGivenOpenMayStayFull) {
  const OnePage pipe;
  const FileDescriptor given(open(pipe.path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string bytes(10 * static_cast<std::size_t>(pipe.size), 'x');
  std::string got;
  std::atomic<bool> written = false;
  std::thread reader([&] { got = Taken(pipe, bytes.size(), written); });
  const Status status = WriteFile("/proc/self/fd/" + std::to_string(given.get()), bytes, Exit::Usage, 0666, {});
  written = true;
  reader.join();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(got.size(), bytes.size());
}

TEST(Pipes, APipeThatIsOpenForAReportToComeHasNotEnded) {
  const OnePage pipe;
  ASSERT_TRUE(OpenPipe(pipe.path).ok());
  char letter = 0;
  EXPECT_EQ(read(pipe.reader.get(), &letter, 1), -1);
  EXPECT_EQ(errno, EAGAIN) << "its reader waits";
  ASSERT_TRUE(OpenPipe(pipe.path).ok()) << "each case of an audit asks";
  ASSERT_TRUE(WriteFile(pipe.path, "x", Exit::Failure).ok());
  EXPECT_EQ(read(pipe.reader.get(), &letter, 1), 1);
  EXPECT_EQ(read(pipe.reader.get(), &letter, 1), 0) << "nothing more will come";
}

TEST(Pipes, WhatIsNoPipeIsNotOpenedForAReportToCome) {
  const TemporaryDir dir;
  EXPECT_TRUE(OpenPipe(dir.File("none")).ok());
  EXPECT_TRUE(OpenPipe(dir.path()).ok());
  ASSERT_TRUE(WriteFile(dir.File("a"), "before", Exit::Failure).ok());
  EXPECT_TRUE(OpenPipe(dir.File("a")).ok());
  EXPECT_EQ(*ReadFile(dir.File("a")), "before");
}

// The text of an error, and its exit code as the exit status. A process of its own: a signal ends all later writes.
void ExitAs(const Status& status) {
  std::fprintf(stderr, "%s", status.message().c_str());
  std::exit(static_cast<int>(status.exit()));
}

TEST(Pipes, ASignalEndsTheWaitForAReader) {
  const OnePage pipe;
  const FileDescriptor given(open(pipe.path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string more(static_cast<std::size_t>(pipe.size) + 1, 'x');
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string why = std::string("stdout: cannot write: stopped by ") + strsignal(number);
    const auto written = [&](bool twice) {
      signal(number, SIG_DFL);  // tests that a shell started in its background ignore it
      const SignalsTaken taken;
      raise(number);
      if (twice) (void)WriteAll(given.get(), more, "a report before");
      ExitAs(WriteAll(given.get(), more, "stdout"));
    };
    EXPECT_EXIT(written(false), ::testing::ExitedWithCode(128 + number), why);
    EXPECT_EXIT(written(true), ::testing::ExitedWithCode(128 + number), why);
  }
}

TEST(Pipes, ASignalEndsNoWriteForWhichThereIsRoom) {
  const OnePage pipe;
  const FileDescriptor given(open(pipe.path.c_str(), O_WRONLY | O_CLOEXEC));
  const std::string page(static_cast<std::size_t>(pipe.size), 'x');
  const auto written = [&] {
    signal(SIGTERM, SIG_DFL);
    const SignalsTaken taken;
    raise(SIGTERM);
    const Status status = WriteAll(given.get(), page, "stdout");
    _exit(static_cast<int>(status.exit()));
  };
  EXPECT_EXIT(written(), ::testing::ExitedWithCode(0), "");
  int waiting = 0;
  ioctl(pipe.reader.get(), FIONREAD, &waiting);
  EXPECT_EQ(waiting, pipe.size);
}

}  // namespace
}  // namespace cuaudit::harness::pipes_test
