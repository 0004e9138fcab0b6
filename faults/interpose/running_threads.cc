// SPDX-License-Identifier: MIT
#include "faults/interpose/running_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace cuaudit::faults {
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
