// SPDX-License-Identifier: MIT
// Descriptors: the functions that open and close one are wrapped, so that each has a stack; at the end of a cycle /proc/self/fd is
// compared with what they said, so that none is missed that came by another way (recvmsg, a system call, the C library's own).
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "faults/interpose/host_state.h"

namespace cuaudit::faults {
namespace {

constexpr int kMostDescriptors = 1 << 16;  // higher ones are not followed

class DescriptorSet {
 public:
  void Add(int descriptor) noexcept { Word(descriptor).fetch_or(Bit(descriptor), std::memory_order_relaxed); }
  bool Remove(int descriptor) noexcept {
    return (Word(descriptor).fetch_and(~Bit(descriptor), std::memory_order_relaxed) & Bit(descriptor)) != 0;
  }
  bool Has(int descriptor) const noexcept { return (word_[descriptor / 64].load(std::memory_order_relaxed) & Bit(descriptor)) != 0; }
  void Clear() noexcept {
    for (std::atomic<uint64_t>& word : word_) word.store(0, std::memory_order_relaxed);
  }
  uint64_t Group(int index) const noexcept { return word_[index].load(std::memory_order_relaxed); }
  static constexpr int kGroups = kMostDescriptors / 64;

 private:
  static uint64_t Bit(int descriptor) noexcept { return uint64_t{1} << (descriptor % 64); }
  std::atomic<uint64_t>& Word(int descriptor) noexcept { return word_[descriptor / 64]; }
  std::atomic<uint64_t> word_[kGroups] = {};
};

constinit DescriptorSet known;
constinit DescriptorSet seen;  // of one census
constinit std::atomic_flag counting = ATOMIC_FLAG_INIT;

// Wrapped calls under way: between a call and its record the two disagree.
constinit std::atomic<uint64_t> begun{0};
constinit std::atomic<uint64_t> ended{0};

class UnderWay {
 public:
  UnderWay() noexcept { begun.fetch_add(1, std::memory_order_seq_cst); }
  ~UnderWay() { ended.fetch_add(1, std::memory_order_seq_cst); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
};

bool Follows(int descriptor) noexcept { return descriptor >= 0 && descriptor < kMostDescriptors && Watching() && !InBorrowedMemory(); }

uint64_t Name(int descriptor) noexcept { return static_cast<uint64_t>(descriptor) + 1; }

int Opened(int descriptor, HostCall call) noexcept {
  if (Follows(descriptor)) {
    known.Add(descriptor);
    Write(call, Name(descriptor), 0);
  }
  return descriptor;
}

// Before the number goes back: afterwards another thread may have it. What we do not know is not ours to judge.
void Closing(int descriptor) noexcept {
  if (Follows(descriptor) && known.Remove(descriptor)) Write(HostCall::DescriptorClose, Name(descriptor), 0);
}

// Of a stream without a descriptor (fmemopen) fileno fails, which the program must not notice.
void Closing(FILE* stream) noexcept {
  const int before = errno;
  Closing(fileno(stream));
  errno = before;
}

// False when the directory cannot be read.
bool Look() noexcept {
  seen.Clear();
  const int directory = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) return false;
  alignas(dirent64) char buffer[2048];
  for (;;) {
    const long got = syscall(SYS_getdents64, directory, buffer, sizeof(buffer));
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      int descriptor = 0;
      const char* digit = entry->d_name;
      for (; *digit >= '0' && *digit <= '9' && descriptor < kMostDescriptors; ++digit) descriptor = descriptor * 10 + (*digit - '0');
      if (*digit == '\0' && descriptor != directory && descriptor < kMostDescriptors) seen.Add(descriptor);
    }
  }
  syscall(SYS_close, directory);
  return true;
}

}  // namespace

void RememberOpenDescriptors() noexcept {
  if (!Look()) return;
  for (int descriptor = 0; descriptor < kMostDescriptors; ++descriptor) {
    if (seen.Has(descriptor)) known.Add(descriptor);
  }
}

void TakeCensus() noexcept {
  constexpr int kAttempts = 16;
  if (counting.test_and_set(std::memory_order_acquire)) return;  // another thread is at it
  bool agreed = false;
  {
    Quiet quiet;
    for (int attempt = 0; attempt < kAttempts && !agreed; ++attempt) {
      const uint64_t before = begun.load(std::memory_order_seq_cst);
      if (ended.load(std::memory_order_seq_cst) == before && Look()) agreed = begun.load(std::memory_order_seq_cst) == before;
      if (!agreed) sched_yield();
    }
  }
  for (int group = 0; agreed && group < DescriptorSet::kGroups; ++group) {
    for (uint64_t differs = known.Group(group) ^ seen.Group(group); differs != 0; differs &= differs - 1) {
      const int descriptor = group * 64 + __builtin_ctzll(differs);
      if (seen.Has(descriptor)) {
        known.Add(descriptor);
        Write(HostCall::DescriptorFound, Name(descriptor), 0);
      } else if (known.Remove(descriptor)) {
        Write(HostCall::DescriptorGone, Name(descriptor), 0);
      }
    }
  }
  counting.clear(std::memory_order_release);
}

}  // namespace cuaudit::faults

using namespace cuaudit::faults;

// The names are given to the assembler alone: the headers' own declarations differ in attributes from one C library to the next.
#define CUAUDIT_WRAP(result, name, parameters)                                                       \
  extern "C" __attribute__((visibility("default"))) result wrapped_##name parameters __asm__(#name); \
  static result(*next_##name##_) parameters;                                                         \
  extern "C" result wrapped_##name parameters

// A function that answers a descriptor.
#define CUAUDIT_OPENS(call, name, parameters, arguments)                   \
  CUAUDIT_WRAP(int, name, parameters) {                                    \
    const UnderWay under_way;                                              \
    return Opened(Next(&next_##name##_, #name) arguments, HostCall::call); \
  }

// The same with a mode that is there only when a file may be made.
#define CUAUDIT_OPENS_WITH_MODE(name, parameters, arguments, last)                   \
  CUAUDIT_WRAP(int, name, parameters) {                                              \
    mode_t mode = 0;                                                                 \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                \
      va_list list;                                                                  \
      va_start(list, last);                                                          \
      mode = va_arg(list, mode_t);                                                   \
      va_end(list);                                                                  \
    }                                                                                \
    const UnderWay under_way;                                                        \
    return Opened(Next(&next_##name##_, #name) arguments, HostCall::DescriptorOpen); \
  }

CUAUDIT_OPENS_WITH_MODE(open, (const char* path, int flags, ...), (path, flags, mode), flags)
CUAUDIT_OPENS_WITH_MODE(open64, (const char* path, int flags, ...), (path, flags, mode), flags)
CUAUDIT_OPENS_WITH_MODE(openat, (int directory, const char* path, int flags, ...), (directory, path, flags, mode), flags)
CUAUDIT_OPENS_WITH_MODE(openat64, (int directory, const char* path, int flags, ...), (directory, path, flags, mode), flags)
CUAUDIT_OPENS(DescriptorOpen, __open_2, (const char* path, int flags), (path, flags))
CUAUDIT_OPENS(DescriptorOpen, __open64_2, (const char* path, int flags), (path, flags))
CUAUDIT_OPENS(DescriptorOpen, __openat_2, (int directory, const char* path, int flags), (directory, path, flags))
CUAUDIT_OPENS(DescriptorOpen, __openat64_2, (int directory, const char* path, int flags), (directory, path, flags))
CUAUDIT_OPENS(DescriptorOpen, creat, (const char* path, mode_t mode), (path, mode))
CUAUDIT_OPENS(DescriptorOpen, creat64, (const char* path, mode_t mode), (path, mode))
CUAUDIT_OPENS(DescriptorOpen, mkstemp, (char* path), (path))
CUAUDIT_OPENS(DescriptorOpen, mkstemp64, (char* path), (path))
CUAUDIT_OPENS(DescriptorOpen, mkostemp, (char* path, int flags), (path, flags))
CUAUDIT_OPENS(DescriptorOpen, mkostemp64, (char* path, int flags), (path, flags))
CUAUDIT_OPENS(DescriptorSocket, socket, (int domain, int type, int protocol), (domain, type, protocol))
CUAUDIT_OPENS(DescriptorSocket, accept, (int descriptor, void* address, void* length), (descriptor, address, length))
CUAUDIT_OPENS(DescriptorSocket, accept4, (int descriptor, void* address, void* length, int flags), (descriptor, address, length, flags))
CUAUDIT_OPENS(DescriptorDup, dup, (int descriptor), (descriptor))
CUAUDIT_OPENS(DescriptorEvent, eventfd, (unsigned count, int flags), (count, flags))
CUAUDIT_OPENS(DescriptorPoll, epoll_create, (int size), (size))
CUAUDIT_OPENS(DescriptorPoll, epoll_create1, (int flags), (flags))
CUAUDIT_OPENS(DescriptorTimer, timerfd_create, (int clock, int flags), (clock, flags))
CUAUDIT_OPENS(DescriptorMemory, memfd_create, (const char* name, unsigned flags), (name, flags))
CUAUDIT_OPENS(DescriptorWatch, inotify_init, (), ())
CUAUDIT_OPENS(DescriptorWatch, inotify_init1, (int flags), (flags))

// signalfd changes a descriptor that it is given, and makes one when it is given none.
CUAUDIT_WRAP(int, signalfd, (int descriptor, const sigset_t* mask, int flags)) {
  const UnderWay under_way;
  const int result = Next(&next_signalfd_, "signalfd")(descriptor, mask, flags);
  return descriptor == -1 ? Opened(result, HostCall::DescriptorSignal) : result;
}

// A pair of descriptors.
static int OpenedPair(int result, const int* pair, HostCall call) {
  if (result == 0) {
    Opened(pair[0], call);
    Opened(pair[1], call);
  }
  return result;
}

CUAUDIT_WRAP(int, pipe, (int* pair)) {
  const UnderWay under_way;
  return OpenedPair(Next(&next_pipe_, "pipe")(pair), pair, HostCall::DescriptorPipe);
}

CUAUDIT_WRAP(int, pipe2, (int* pair, int flags)) {
  const UnderWay under_way;
  return OpenedPair(Next(&next_pipe2_, "pipe2")(pair, flags), pair, HostCall::DescriptorPipe);
}

CUAUDIT_WRAP(int, socketpair, (int domain, int type, int protocol, int* pair)) {
  const UnderWay under_way;
  return OpenedPair(Next(&next_socketpair_, "socketpair")(domain, type, protocol, pair), pair, HostCall::DescriptorSocket);
}

// The target is closed when it was open, and open when the call succeeded.
CUAUDIT_WRAP(int, dup2, (int from, int to)) {
  const UnderWay under_way;
  const int result = Next(&next_dup2_, "dup2")(from, to);
  if (result < 0 || from == to) return result;
  Closing(to);
  return Opened(result, HostCall::DescriptorDup);
}

CUAUDIT_WRAP(int, dup3, (int from, int to, int flags)) {
  const UnderWay under_way;
  const int result = Next(&next_dup3_, "dup3")(from, to, flags);
  if (result < 0) return result;
  Closing(to);
  return Opened(result, HostCall::DescriptorDup);
}

CUAUDIT_WRAP(int, close, (int descriptor)) {
  const UnderWay under_way;
  Closing(descriptor);
  return Next(&next_close_, "close")(descriptor);
}

// Streams and directories: what the C library opens for them is not seen by the wrappers above.
#define CUAUDIT_OPENS_STREAM(type, name, parameters, arguments, descriptor_of, call) \
  CUAUDIT_WRAP(type*, name, parameters) {                                            \
    const UnderWay under_way;                                                        \
    type* const stream = Next(&next_##name##_, #name) arguments;                     \
    if (stream != nullptr) Opened(descriptor_of(stream), HostCall::call);            \
    return stream;                                                                   \
  }

CUAUDIT_OPENS_STREAM(FILE, fopen, (const char* path, const char* mode), (path, mode), fileno, DescriptorStream)
CUAUDIT_OPENS_STREAM(FILE, fopen64, (const char* path, const char* mode), (path, mode), fileno, DescriptorStream)
CUAUDIT_OPENS_STREAM(FILE, tmpfile, (), (), fileno, DescriptorStream)
CUAUDIT_OPENS_STREAM(FILE, tmpfile64, (), (), fileno, DescriptorStream)
CUAUDIT_OPENS_STREAM(FILE, popen, (const char* command, const char* mode), (command, mode), fileno, DescriptorStream)
CUAUDIT_OPENS_STREAM(DIR, opendir, (const char* path), (path), dirfd, DescriptorDirectory)

CUAUDIT_WRAP(int, fclose, (FILE * stream)) {
  const UnderWay under_way;
  if (stream != nullptr && Watching()) Closing(stream);
  return Next(&next_fclose_, "fclose")(stream);
}

CUAUDIT_WRAP(int, pclose, (FILE * stream)) {
  if (stream != nullptr && Watching()) Closing(stream);
  return Next(&next_pclose_, "pclose")(stream);  // waits for the command
}

CUAUDIT_WRAP(int, closedir, (DIR * directory)) {
  const UnderWay under_way;
  if (directory != nullptr && Watching()) Closing(dirfd(directory));
  return Next(&next_closedir_, "closedir")(directory);
}
