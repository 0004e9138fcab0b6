// SPDX-License-Identifier: MIT
// work_dir.h: the directory in which one command keeps its journals, plan and trial log, locked against a second one.
//
//   Owns      the lock, and the directory itself when it made it: Remove deletes such a directory with all it holds.
//   Threads   one thread.
//   Errors    Status: not a directory, not writable, in use by another cuaudit.
//   Faults    makes no driver calls.
//   Source    ours; the lock is flock on the file "lock", so it ends with its process however that dies.
#pragma once

#include <cstddef>
#include <string>

#include "harness/sweep/files.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

class WorkDir {
 public:
  // `path` empty: a fresh directory in $TMPDIR; where that is unset in /dev/shm if `in_memory` and it has a GiB to spare, else in /tmp.
  // Unless `keep`, it says so in its lock that it is to be removed. Otherwise it is made if it does not exist, and never removed.
  static Result<WorkDir> Open(const std::string& path, bool in_memory = false, bool keep = false);

  // Removes fresh directories whose process was killed before it could: those of this user that say so and that nobody has locked. A
  // directory that the user named, or wanted to keep, is none. How many; at most 64 at a time.
  static std::size_t RemoveStale();

  const std::string& path() const noexcept { return path_; }
  bool fresh() const noexcept { return fresh_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  void Remove() const noexcept;  // only a fresh one

 private:
  std::string path_;  // absolute
  bool fresh_ = false;
  FileDescriptor lock_;
};

}  // namespace cuaudit::harness
