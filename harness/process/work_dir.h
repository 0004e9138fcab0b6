// SPDX-License-Identifier: MIT
// work_dir.h: the directory in which one command keeps journals, plan and trial log. A lock keeps a second command out.
//
//   Owns      the lock, and the directory itself if it is fresh: Remove deletes a fresh directory with its content.
//   Threads   one thread.
//   Errors    Status: not a directory, not writable, in use by another cuaudit.
//
// A fresh directory is on a disk, because its trial log grows with the sweep. Its journals may be in a second directory in memory, where
// trials are faster.
//
// The lock is flock on the file "lock", so the lock ends with its process, however the process dies.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "harness/process/files.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

class WorkDir {
 public:
  // An empty `path` makes a fresh directory in $TMPDIR. If that is unset, it is on a disk: in /tmp, else in /var/tmp, else in the user's
  // cache directory, and only where none of these can be used in /tmp whatever that is. Its journals are then in /dev/shm when `in_memory`
  // and a GiB is free there. Unless `keep`, the lock file says that the directory may be removed. A given path is created if needed, never
  // removed, and holds everything.
  static Result<WorkDir> Open(const std::string& path, bool in_memory = false, bool keep = false);

  // Removes fresh directories of killed runs: those of this user that say so and that nobody has locked, at most 64. Directories that the
  // user named or kept are not removed. Answers how many were removed.
  static std::size_t RemoveStale();

  // The first of `parents` that can be written and is not in memory; empty when there is none.
  static std::string OnDisk(std::span<const std::string> parents);
  // True for a file system that a reboot empties: tmpfs and ramfs.
  static bool InMemory(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  bool fresh() const noexcept { return fresh_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // A file that is not needed once its trial is judged.
  std::string Journal(const std::string& name) const { return memory_ == nullptr ? File(name) : memory_->File(name); }
  void Remove() const noexcept;  // only a fresh directory

 private:
  static Result<WorkDir> Fresh(const std::string& parent, bool keep);
  Status Lock(bool keep);

  std::string path_;  // absolute
  bool fresh_ = false;
  FileDescriptor lock_;
  std::unique_ptr<WorkDir> memory_;  // null: journals are in this directory
};

}  // namespace cuaudit::harness
