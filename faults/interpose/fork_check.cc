// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "faults/interpose/forker.h"
#include "faults/journal/stack_key.h"

extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __lsan_do_leak_check();
__attribute__((weak)) void __tsan_init();
__attribute__((weak)) void __msan_init();
}

namespace cuaudit::faults {
namespace {

struct DirectoryEntry {  // linux_dirent64
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

// System calls: the host drop-in takes open and close of the C library for the program's and writes a record of each, with its stack.
int OpenUnseen(const char* path, int flags) noexcept { return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC)); }

void CloseUnseen(int file) noexcept { syscall(SYS_close, file); }

bool HasSanitizer() noexcept {
  return &__asan_init != nullptr || &__lsan_do_leak_check != nullptr || &__tsan_init != nullptr || &__msan_init != nullptr;
}

// Reads the number of tasks again for a while, because the kernel counts a joined thread for a moment longer.
int TasksDownTo(int expected) noexcept {
  constexpr int kLooks = 50;
  int tasks = -1;
  for (int look = 0; look < kLooks; ++look) {
    struct stat facts;
    if (stat("/proc/self/task", &facts) != 0) return -1;
    tasks = static_cast<int>(facts.st_nlink) - 2;
    if (tasks <= expected) break;
    sched_yield();
  }
  return tasks;
}

bool HasChildren() noexcept {
  siginfo_t seen;
  return waitid(P_ALL, 0, &seen, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

bool HasIntervalTimer() noexcept {
  for (const __itimer_which which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval timer;
    if (getitimer(which, &timer) == 0 && (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0)) return true;
  }
  return false;
}

// True when the process has a timer from timer_create, armed or not; a forked process does not inherit such timers. A kernel that does
// not list timers hides them. The tool's fork runner repeats a trial that hangs for this reason without a fork.
bool HasPosixTimer() noexcept {
  const int file = OpenUnseen("/proc/self/timers", O_RDONLY);
  if (file < 0) return false;
  char first = '\0';
  const bool any = read(file, &first, 1) == 1;
  CloseUnseen(file);
  return any;
}

// True for a device without state: /dev/null, zero, full, random, urandom.
bool IsStateless(const struct stat& facts) noexcept {
  if (!S_ISCHR(facts.st_mode) || major(facts.st_rdev) != 1) return false;
  const unsigned minor_number = minor(facts.st_rdev);
  return minor_number == 3 || minor_number == 5 || minor_number == 7 || minor_number == 8 || minor_number == 9;
}

// Calls `see` for every open descriptor until it returns false. Returns false when /proc cannot be read.
template <typename See>
bool EachDescriptor(See see) noexcept {
  const int directory = OpenUnseen("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  if (directory < 0) return false;
  alignas(DirectoryEntry) char entries[2048];
  bool more = true;
  long bytes = 0;
  while (more && (bytes = syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0) {
    for (long at = 0; at < bytes && more;) {
      const DirectoryEntry* const entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->length;
      if (entry->name[0] == '.') continue;
      const int descriptor = atoi(entry->name);
      if (descriptor != directory) more = see(descriptor);
    }
  }
  CloseUnseen(directory);
  return bytes >= 0;
}

// Parses what is needed of one line of /proc/self/maps: "begin-end rwxs offset major:minor inode path".
bool ParseMapping(const char* line, bool* shared, OwnFile* file) noexcept {
  const char* at = strchr(line, ' ');
  if (at == nullptr || strlen(at) < 6) return false;
  *shared = at[2] == 'w' && at[4] == 's';
  at = strchr(at + 1, ' ');
  if (at != nullptr) at = strchr(at + 1, ' ');
  if (at == nullptr) return false;
  char* end = nullptr;
  const unsigned long device_major = strtoul(at + 1, &end, 16);
  if (*end != ':') return false;
  const unsigned long device_minor = strtoul(end + 1, &end, 16);
  file->device = makedev(static_cast<unsigned>(device_major), static_cast<unsigned>(device_minor));
  file->inode = strtoull(end, &end, 10);
  return true;
}

// Calls `see` for every line of a file of /proc, without the line end, until it returns false. Returns false when the file cannot be
// read or a line is too long.
template <typename See>
bool EachLine(const char* path, See see) noexcept {
  const int file = OpenUnseen(path, O_RDONLY);
  if (file < 0) return false;
  char text[8192];
  std::size_t kept = 0;
  ssize_t got = 1;
  bool more = true;
  while (more && kept < sizeof(text) - 1 && (got = read(file, text + kept, sizeof(text) - 1 - kept)) > 0) {
    const std::size_t length = kept + static_cast<std::size_t>(got);
    text[length] = '\0';
    char* line = text;
    for (char* end = strchr(line, '\n'); end != nullptr && more; line = end + 1, end = strchr(line, '\n')) {
      *end = '\0';
      more = see(line);
    }
    kept = length - static_cast<std::size_t>(line - text);
    memmove(text, line, kept);
  }
  CloseUnseen(file);
  return !more || got == 0;
}

// Uses the system call, because the host drop-in intercepts the C library's madvise.
bool Advise(const Span& span, int advice) noexcept {
  return syscall(SYS_madvise, reinterpret_cast<void*>(span.begin), span.end - span.begin, advice) == 0;
}

}  // namespace

ForkRefusal ForkCheck::FindWiped(const void* own) noexcept {
  Span span;
  bool has_room = true;
  wiped_count_ = 0;
  const bool whole = EachLine("/proc/self/smaps", [&](const char* line) {
    constexpr char kFlags[] = "VmFlags:";
    char* end = nullptr;
    const std::uintptr_t begin = strtoull(line, &end, 16);
    if (end != line && *end == '-') span = {begin, strtoull(end + 1, nullptr, 16)};
    if (strncmp(line, kFlags, sizeof(kFlags) - 1) != 0 || strstr(line, " wf") == nullptr) return true;
    if (span.begin == reinterpret_cast<std::uintptr_t>(own)) return true;
    has_room = wiped_count_ < kWiped;
    if (has_room) wiped_[wiped_count_++] = span;
    return has_room;
  });
  if (!whole) return ForkRefusal::System;
  return has_room ? ForkRefusal::None : ForkRefusal::WipedMemory;
}

// The layout of the address space does not show which memory a fork wipes, and the flags of mappings take much longer to read. A layout
// that had no such memory is therefore assumed to have none still. In another layout the flags are read anew, because the program may
// have changed them.
ForkRefusal ForkCheck::KeepWiped(const void* own) noexcept {
  if (layout_ == none_wiped_) return ForkRefusal::None;
  none_wiped_ = 0;
  ForkRefusal why = FindWiped(own);
  unsigned kept = 0;
  while (why == ForkRefusal::None && kept < wiped_count_) {
    if (Advise(wiped_[kept], MADV_KEEPONFORK)) {
      ++kept;
    } else {
      why = ForkRefusal::AlwaysWiped;
    }
  }
  if (why == ForkRefusal::None && wiped_count_ == 0) none_wiped_ = layout_;
  if (why == ForkRefusal::None) return why;
  wiped_count_ = kept;
  WipeAgain();
  wiped_count_ = 0;
  return why;
}

void ForkCheck::WipeAgain() noexcept {
  for (unsigned i = 0; i < wiped_count_; ++i) (void)Advise(wiped_[i], MADV_WIPEONFORK);
}

void ForkCheck::Start() noexcept {
  EachDescriptor([this](int descriptor) {
    struct stat facts;
    if (descriptor < kGiven && fstat(descriptor, &facts) == 0) given_[descriptor] = {facts.st_dev, facts.st_ino};
    return true;
  });
}

void ForkCheck::AddOwn(const char* path) noexcept {
  struct stat facts;
  if (owned_ < 2 && stat(path, &facts) == 0) own_[owned_++] = {facts.st_dev, facts.st_ino};
}

bool ForkCheck::WasGiven(int descriptor) const noexcept {
  struct stat facts;
  return descriptor < kGiven && fstat(descriptor, &facts) == 0 && facts.st_dev == given_[descriptor].device &&
         facts.st_ino == given_[descriptor].inode;
}

bool ForkCheck::HoldsDescriptors(bool* failed) const noexcept {
  bool holds = false;
  *failed = !EachDescriptor([&](int descriptor) {
    struct stat facts;
    holds = !WasGiven(descriptor) && (fstat(descriptor, &facts) != 0 || !IsStateless(facts));
    return !holds;
  });
  return holds || *failed;
}

bool ForkCheck::SharesMemory(std::uint64_t* layout, bool* failed) const noexcept {
  bool shares = false;
  *layout = kKeySeed;
  const bool whole = EachLine("/proc/self/maps", [&](const char* line) {
    bool shared = false;
    OwnFile file;
    if (!ParseMapping(line, &shared, &file)) *failed = true;
    bool own = false;
    for (unsigned i = 0; i < owned_; ++i) own = own || (file.inode == own_[i].inode && file.device == own_[i].device);
    if (!own) *layout = MixKey(*layout, std::string_view(line));  // a fork has other journals, and none of them can be wiped
    shares = *failed || (shared && !own);
    return !shares;
  });
  if (!whole) *failed = true;
  return shares || *failed;
}

ForkRefusal ForkCheck::Look(unsigned attendants, pid_t tool) noexcept {
  if (getppid() != tool) return ForkRefusal::Indirect;
  if (HasSanitizer()) return ForkRefusal::Sanitizer;
  const int expected = 1 + static_cast<int>(attendants);
  const int tasks = TasksDownTo(expected);
  if (tasks < 1) return ForkRefusal::System;
  if (tasks != expected || syscall(SYS_gettid) != getpid()) return ForkRefusal::Threads;
  if (HasChildren()) return ForkRefusal::Children;
  if (HasIntervalTimer() || HasPosixTimer()) return ForkRefusal::Timer;
  bool failed = false;
  if (HoldsDescriptors(&failed)) return failed ? ForkRefusal::System : ForkRefusal::Descriptor;
  if (SharesMemory(&layout_, &failed)) return failed ? ForkRefusal::System : ForkRefusal::SharedMemory;
  return ForkRefusal::None;
}

namespace {

struct TaskEntry {  // linux_dirent64
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t bytes;
  std::uint8_t type;
  char name[1];
};

// A thread that was joined stays in the list for a moment. It has been marked as ending before its joiner was woken.
bool IsEnding(pid_t thread) noexcept {
  constexpr unsigned long kEnding = 4;
  constexpr int kFieldsBetween = 6;  // from the state, the first field behind the name, to the flags
  char text[512];
  snprintf(text, sizeof(text), "/proc/self/task/%d/stat", thread);
  const auto file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC));
  if (file < 0) return true;
  const long got = syscall(SYS_read, file, text, sizeof(text) - 1);
  syscall(SYS_close, file);
  if (got <= 0) return true;
  text[got] = '\0';
  const char* at = strrchr(text, ')');  // the name of a thread may have spaces
  if (at == nullptr) return false;
  ++at;
  for (int field = 0; field <= kFieldsBetween && at != nullptr; ++field) at = strchr(at + (field == 0 ? 0 : 1), ' ');
  return at != nullptr && (strtoul(at + 1, nullptr, 10) & kEnding) != 0;
}

}  // namespace

void EachRunningThread(void (*see)(pid_t thread)) noexcept {
  struct stat facts;
  if (stat("/proc/self/task", &facts) == 0 && facts.st_nlink == 3) return;  // one thread alone
  const auto directory = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) return;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  alignas(TaskEntry) char entries[4096];
  for (long bytes = 0; (bytes = syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0;) {
    for (long at = 0; at < bytes;) {
      const TaskEntry* const entry = reinterpret_cast<const TaskEntry*>(entries + at);
      const auto thread = static_cast<pid_t>(atoi(entries + at + offsetof(TaskEntry, name)));
      if (thread > 0 && thread != self && !IsEnding(thread)) see(thread);
      at += entry->bytes;
    }
  }
  syscall(SYS_close, directory);
}

}  // namespace cuaudit::faults
