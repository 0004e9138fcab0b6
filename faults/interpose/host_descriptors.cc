// SPDX-License-Identifier: MIT
// Wraps the functions that open and close descriptors, and those that map memory, so that each descriptor and mapping has a stack. A census
// (host_census.h) finds descriptors that came another way: by a system call, or opened inside the C library.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults/interpose/host_census.h"
#include "faults/interpose/host_state.h"
#include "faults/interpose/next_function.h"

namespace cuaudit::faults {

namespace {

// Keeps errno, because fileno fails for a stream without a descriptor (fmemopen), which the program must not notice.
void ClosingStream(FILE* stream) noexcept {
  const int before = errno;
  Closing(fileno(stream));
  errno = before;
}

}  // namespace

// Records the mappings that the program and its libraries make. Mappings that the C library makes for its heap and for stacks do not
// pass through these functions.

namespace {

constexpr uint64_t kPage = 4096;
uint64_t Pages(size_t bytes) noexcept { return (bytes + kPage - 1) & ~(kPage - 1); }

// NOLINTNEXTLINE(performance-no-int-to-ptr): what the kernel answers
void* Answer(long result) noexcept { return reinterpret_cast<void*>(result); }

}  // namespace

}  // namespace cuaudit::faults

using namespace cuaudit::faults;

// Sets the exported name by an assembler label, because the headers' own declarations differ in attributes between C libraries.
#define CUAUDIT_WRAP(result, name, parameters)                                                       \
  extern "C" __attribute__((visibility("default"))) result wrapped_##name parameters __asm__(#name); \
  static result(*next_##name##_) parameters;                                                         \
  extern "C" result wrapped_##name parameters

// Defines a function that returns a descriptor, at once (How = UnderWay) or possibly after a wait (MayWait).
#define CUAUDIT_OPENS_BY(How, call, name, parameters, arguments)           \
  CUAUDIT_WRAP(int, name, parameters) {                                    \
    const How under_way;                                                   \
    return Opened(Next(&next_##name##_, #name) arguments, HostCall::call); \
  }
#define CUAUDIT_OPENS(call, name, parameters, arguments) CUAUDIT_OPENS_BY(UnderWay, call, name, parameters, arguments)
// For functions that may wait: opening a FIFO waits for the other end.
#define CUAUDIT_WAITS(call, name, parameters, arguments) CUAUDIT_OPENS_BY(MayWait, call, name, parameters, arguments)

// The same with a mode argument, which is passed only when the call may create a file.
#define CUAUDIT_OPENS_WITH_MODE(name, parameters, arguments, last)                   \
  CUAUDIT_WRAP(int, name, parameters) {                                              \
    mode_t mode = 0;                                                                 \
    if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                \
      va_list list;                                                                  \
      va_start(list, last);                                                          \
      mode = va_arg(list, mode_t);                                                   \
      va_end(list);                                                                  \
    }                                                                                \
    const MayWait under_way;                                                         \
    return Opened(Next(&next_##name##_, #name) arguments, HostCall::DescriptorOpen); \
  }

CUAUDIT_OPENS_WITH_MODE(open, (const char* path, int flags, ...), (path, flags, mode), flags)
CUAUDIT_OPENS_WITH_MODE(open64, (const char* path, int flags, ...), (path, flags, mode), flags)
CUAUDIT_OPENS_WITH_MODE(openat, (int directory, const char* path, int flags, ...), (directory, path, flags, mode), flags)
CUAUDIT_OPENS_WITH_MODE(openat64, (int directory, const char* path, int flags, ...), (directory, path, flags, mode), flags)
CUAUDIT_WAITS(DescriptorOpen, __open_2, (const char* path, int flags), (path, flags))
CUAUDIT_WAITS(DescriptorOpen, __open64_2, (const char* path, int flags), (path, flags))
CUAUDIT_WAITS(DescriptorOpen, __openat_2, (int directory, const char* path, int flags), (directory, path, flags))
CUAUDIT_WAITS(DescriptorOpen, __openat64_2, (int directory, const char* path, int flags), (directory, path, flags))
CUAUDIT_WAITS(DescriptorOpen, creat, (const char* path, mode_t mode), (path, mode))
CUAUDIT_WAITS(DescriptorOpen, creat64, (const char* path, mode_t mode), (path, mode))
CUAUDIT_OPENS(DescriptorOpen, mkstemp, (char* path), (path))
CUAUDIT_OPENS(DescriptorOpen, mkstemp64, (char* path), (path))
CUAUDIT_OPENS(DescriptorOpen, mkostemp, (char* path, int flags), (path, flags))
CUAUDIT_OPENS(DescriptorOpen, mkostemp64, (char* path, int flags), (path, flags))
CUAUDIT_OPENS(DescriptorOpen, mkstemps, (char* path, int suffix), (path, suffix))
CUAUDIT_OPENS(DescriptorOpen, mkstemps64, (char* path, int suffix), (path, suffix))
CUAUDIT_OPENS(DescriptorOpen, mkostemps, (char* path, int suffix, int flags), (path, suffix, flags))
CUAUDIT_OPENS(DescriptorOpen, mkostemps64, (char* path, int suffix, int flags), (path, suffix, flags))
CUAUDIT_OPENS(DescriptorOpen, shm_open, (const char* name, int flags, mode_t mode), (name, flags, mode))
CUAUDIT_OPENS(DescriptorOpen, posix_openpt, (int flags), (flags))
CUAUDIT_OPENS(DescriptorOpen, getpt, (), ())
CUAUDIT_OPENS(DescriptorOpen, open_by_handle_at, (int mount, void* handle, int flags), (mount, handle, flags))
CUAUDIT_OPENS(DescriptorOpen, pidfd_open, (pid_t process, unsigned flags), (process, flags))
CUAUDIT_OPENS(DescriptorDup, pidfd_getfd, (int process, int theirs, unsigned flags), (process, theirs, flags))
CUAUDIT_OPENS(DescriptorWatch, fanotify_init, (unsigned flags, unsigned events), (flags, events))
CUAUDIT_OPENS(DescriptorSocket, socket, (int domain, int type, int protocol), (domain, type, protocol))
CUAUDIT_WAITS(DescriptorSocket, accept, (int descriptor, void* address, void* length), (descriptor, address, length))
CUAUDIT_WAITS(DescriptorSocket, accept4, (int descriptor, void* address, void* length, int flags), (descriptor, address, length, flags))
CUAUDIT_OPENS(DescriptorDup, dup, (int descriptor), (descriptor))
CUAUDIT_OPENS(DescriptorEvent, eventfd, (unsigned count, int flags), (count, flags))
CUAUDIT_OPENS(DescriptorPoll, epoll_create, (int size), (size))
CUAUDIT_OPENS(DescriptorPoll, epoll_create1, (int flags), (flags))
CUAUDIT_OPENS(DescriptorTimer, timerfd_create, (int clock, int flags), (clock, flags))
CUAUDIT_OPENS(DescriptorMemory, memfd_create, (const char* name, unsigned flags), (name, flags))
CUAUDIT_OPENS(DescriptorWatch, inotify_init, (), ())
CUAUDIT_OPENS(DescriptorWatch, inotify_init1, (int flags), (flags))

// signalfd changes the descriptor that is passed; it makes one when -1 is passed.
CUAUDIT_WRAP(int, signalfd, (int descriptor, const sigset_t* mask, int flags)) {
  const UnderWay under_way;
  const int result = Next(&next_signalfd_, "signalfd")(descriptor, mask, flags);
  return descriptor == -1 ? Opened(result, HostCall::DescriptorSignal) : result;
}

// For functions that make a pair of descriptors.
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

// dup2 closes the target if it was open. After success the target is open.
CUAUDIT_WRAP(int, dup2, (int from, int to)) {
  const UnderWay under_way;
  const int result = Next(&next_dup2_, "dup2")(from, to);
  return result < 0 || from == to ? result : Replaced(result, HostCall::DescriptorDup);
}

CUAUDIT_WRAP(int, dup3, (int from, int to, int flags)) {
  const UnderWay under_way;
  const int result = Next(&next_dup3_, "dup3")(from, to, flags);
  return result < 0 ? result : Replaced(result, HostCall::DescriptorDup);
}

#define CUAUDIT_CONTROLS(name)                                                                        \
  CUAUDIT_WRAP(int, name, (int descriptor, int command, ...)) {                                       \
    va_list list;                                                                                     \
    va_start(list, command);                                                                          \
    void* const argument = va_arg(list, void*);                                                       \
    va_end(list);                                                                                     \
    auto* const next = Next(&next_##name##_, #name);                                                  \
    if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) return next(descriptor, command, argument); \
    const UnderWay under_way;                                                                         \
    return Opened(next(descriptor, command, argument), HostCall::DescriptorDup);                      \
  }

CUAUDIT_CONTROLS(fcntl)
CUAUDIT_CONTROLS(fcntl64)

CUAUDIT_WRAP(mqd_t, mq_open, (const char* name, int flags, ...)) {
  mode_t mode = 0;
  void* attributes = nullptr;
  if ((flags & O_CREAT) != 0) {
    va_list list;
    va_start(list, flags);
    mode = va_arg(list, mode_t);
    attributes = va_arg(list, void*);
    va_end(list);
  }
  const UnderWay under_way;
  return Opened(Next(&next_mq_open_, "mq_open")(name, flags, mode, attributes), HostCall::DescriptorOpen);
}

CUAUDIT_OPENS(DescriptorOpen, __mq_open_2, (const char* name, int flags), (name, flags))

CUAUDIT_WRAP(int, mq_close, (mqd_t queue)) {
  const UnderWay under_way;
  Closing(queue);
  return Next(&next_mq_close_, "mq_close")(queue);
}

CUAUDIT_WRAP(int, close, (int descriptor)) {
  const UnderWay under_way;
  const bool recorded = Closing(descriptor);
  const int result = Next(&next_close_, "close")(descriptor);
  if (result != 0 && errno == EBADF && !recorded) {
    WasNotOpen(descriptor);
    errno = EBADF;
  }
  return result;
}

// A kernel may lack the call or not know a flag, and then closes nothing. A first call with an empty range finds that out.
CUAUDIT_WRAP(int, close_range, (unsigned first, unsigned last, int flags)) {
  constexpr unsigned kNone = ~0U;
  constexpr int kOnlyOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  auto* const next = Next(&next_close_range_, "close_range");
  if (!Watching() || first > last || (flags & kOnlyOnExec) != 0) return next(first, last, flags);
  const UnderWay under_way;
  if (const int refused = next(kNone, kNone, flags)) return refused;
  ClosingFrom(first, last);
  return next(first, last, flags);
}

CUAUDIT_WRAP(void, closefrom, (int first)) {
  const UnderWay under_way;
  if (Watching()) ClosingFrom(first < 0 ? 0U : static_cast<unsigned>(first), ~0U);
  Next(&next_closefrom_, "closefrom")(first);
}

// For descriptors that were received in a message (SCM_RIGHTS).
static void Received(msghdr* message) {
  if (!Watching()) return;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      Opened(descriptor, HostCall::DescriptorReceived);
    }
  }
}

CUAUDIT_WRAP(ssize_t, recvmsg, (int socket, msghdr* message, int flags)) {
  const MayWait under_way;
  const ssize_t result = Next(&next_recvmsg_, "recvmsg")(socket, message, flags);
  if (result >= 0) Received(message);
  return result;
}

CUAUDIT_WRAP(int, recvmmsg, (int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout)) {
  const MayWait under_way;
  const int result = Next(&next_recvmmsg_, "recvmmsg")(socket, messages, count, flags, timeout);
  for (int i = 0; i < result; ++i) Received(&messages[i].msg_hdr);
  return result;
}

// Streams and directories: the C library opens their descriptors internally, past the wrappers above.
#define CUAUDIT_OPENS_STREAM(type, name, parameters, arguments, descriptor_of, call) \
  CUAUDIT_WRAP(type*, name, parameters) {                                            \
    const MayWait under_way;                                                         \
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
  if (stream != nullptr && Watching()) ClosingStream(stream);
  return Next(&next_fclose_, "fclose")(stream);
}

CUAUDIT_WRAP(int, pclose, (FILE * stream)) {
  if (stream != nullptr && Watching()) ClosingStream(stream);
  return Next(&next_pclose_, "pclose")(stream);  // waits for the command
}

CUAUDIT_WRAP(int, closedir, (DIR * directory)) {
  const UnderWay under_way;
  if (directory != nullptr && Watching()) Closing(dirfd(directory));
  return Next(&next_closedir_, "closedir")(directory);
}

// Mappings that the program and its libraries make. Mappings that the C library makes for its heap and for stacks do not pass through these
// functions.
#define CUAUDIT_WRAP_MAPPING(result, name, parameters)                                               \
  extern "C" __attribute__((visibility("default"))) result wrapped_##name parameters __asm__(#name); \
  extern "C" result wrapped_##name parameters

// Uses system calls instead of the C library's functions, which do nothing else, because the wrapper may be called before a symbol can
// be looked up.
static void* Mapped(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* const memory = Answer(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
  if (memory != MAP_FAILED && Watching()) Write(HostCall::Map, Address(memory), Pages(bytes));
  return memory;
}

CUAUDIT_WRAP_MAPPING(void*, mmap, (void* address, size_t bytes, int protection, int flags, int file, off_t offset)) {
  return Mapped(address, bytes, protection, flags, file, offset);
}

CUAUDIT_WRAP_MAPPING(void*, mmap64, (void* address, size_t bytes, int protection, int flags, int file, off_t offset)) {
  return Mapped(address, bytes, protection, flags, file, offset);
}

CUAUDIT_WRAP_MAPPING(int, munmap, (void* address, size_t bytes)) {
  Record* record = Watching() ? Reserve(HostCall::Unmap, Address(address), Pages(bytes)) : nullptr;
  const int result = static_cast<int>(syscall(SYS_munmap, address, bytes));
  if (result == 0) {
    Finish(record);
  } else {
    Withdraw(record);
  }
  return result;
}

CUAUDIT_WRAP_MAPPING(void*, mremap, (void* address, size_t bytes, size_t wanted, int flags, ...)) {
  void* where = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list list;
    va_start(list, flags);
    where = va_arg(list, void*);
    va_end(list);
  }
  // mremap from zero bytes makes a second mapping of shared memory, and the first one stays.
  Record* record = Watching() && bytes != 0 ? Reserve(HostCall::Unmap, Address(address), Pages(bytes)) : nullptr;
  void* const memory = Answer(syscall(SYS_mremap, address, bytes, wanted, flags, where));
  if (memory == MAP_FAILED) {
    Withdraw(record);
    return memory;
  }
  const uint64_t kept = memory == address ? Pages(bytes < wanted ? bytes : wanted) : 0;
  if (record != nullptr) record->argument[2] = kept;
  Finish(record);
  record = Watching() ? Reserve(HostCall::Map, Address(memory), Pages(wanted)) : nullptr;
  if (record != nullptr) record->argument[2] = kept;
  Finish(record);
  return memory;
}
