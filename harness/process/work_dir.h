// SPDX-License-Identifier: MIT
// work_dir.h: the directory in which one command keeps journals, plan and trial log. A lock keeps a second command out.
//
//   Owns      the lock, and the directory itself if it is fresh: Remove deletes a fresh directory with its content.
//   Threads   one thread.
//   Errors    Status: not a directory, not writable, in use by another cuaudit.
//
// The lock is flock on the file "lock", so the lock ends with its process, however the process dies.
#pragma once

#include <cstddef>
#include <string>

#include "harness/process/files.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

class WorkDir {
 public:
  // An empty `path` makes a fresh directory in $TMPDIR. If that is unset, it is in /dev/shm when `in_memory` and a GiB is free there, else
  // in /tmp. Unless `keep`, the lock file says that the directory may be removed. A given path is created if needed and never removed.
  static Result<WorkDir> Open(const std::string& path, bool in_memory = false, bool keep = false);

  // Removes fresh directories of killed runs: those of this user that say so and that nobody has locked, at most 64. Directories that the
  // user named or kept are not removed. Answers how many were removed.
  static std::size_t RemoveStale();

  const std::string& path() const noexcept { return path_; }
  bool fresh() const noexcept { return fresh_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  void Remove() const noexcept;  // only a fresh directory

 private:
  std::string path_;  // absolute
  bool fresh_ = false;
  FileDescriptor lock_;
};

}  // namespace cuaudit::harness
