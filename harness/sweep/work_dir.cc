// SPDX-License-Identifier: MIT
#include "harness/sweep/work_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace cuaudit::harness {

namespace {

// A file system's page cache fills every page of a sparse journal that is touched; memory does not, which makes trials three times faster.
constexpr const char* kMemory = "/dev/shm";
constexpr std::uintmax_t kSpareBytes = std::uintmax_t{1} << 30U;

std::string FreshParent(bool in_memory) {
  const char* const variable = std::getenv("TMPDIR");
  if (variable != nullptr && *variable != '\0') return variable;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(kMemory, error);
  if (in_memory && !error && space.available >= kSpareBytes && access(kMemory, W_OK) == 0) return kMemory;
  return "/tmp";
}

}  // namespace

Result<WorkDir> WorkDir::Open(const std::string& path, bool in_memory) {
  WorkDir dir;
  std::error_code error;
  if (path.empty()) {
    std::string pattern = FreshParent(in_memory) + "/cuaudit-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return Status(Exit::Usage, pattern + ": cannot create: " + std::strerror(errno));
    dir.path_ = std::filesystem::absolute(pattern, error).string();
    dir.fresh_ = true;
  } else {
    if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
      return Status(Exit::Usage, path + ": cannot create the work directory: " + std::strerror(errno));
    }
    if (!std::filesystem::is_directory(path, error)) return Status(Exit::Usage, path + ": the work directory is not a directory");
    dir.path_ = std::filesystem::canonical(path, error).string();
    if (error) return Status(Exit::Usage, path + ": cannot open the work directory: " + error.message());
  }
  if (dir.path_.find(';') != std::string::npos) {
    dir.Remove();
    return Status(Exit::Usage, dir.path_ + ": a work directory may have no ';' in its path");
  }
  const std::string lock = dir.File("lock");
  dir.lock_ = FileDescriptor(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!dir.lock_.valid()) return Status(Exit::Usage, dir.path_ + ": cannot write into the work directory: " + std::strerror(errno));
  // A child of a sweep that was just killed may hold it for a moment, until it is dead too.
  constexpr int kTries = 25;
  constexpr useconds_t kPauseUs = 20000;
  int locked = flock(dir.lock_.get(), LOCK_EX | LOCK_NB);
  for (int i = 1; i < kTries && locked != 0 && errno == EWOULDBLOCK; ++i) {
    usleep(kPauseUs);
    locked = flock(dir.lock_.get(), LOCK_EX | LOCK_NB);
  }
  if (locked != 0) {
    if (errno == EWOULDBLOCK) return Status(Exit::Usage, dir.path_ + ": another cuaudit is using this work directory");
    return Status(Exit::Failure, lock + ": cannot lock: " + std::strerror(errno));
  }
  return dir;
}

void WorkDir::Remove() const noexcept {
  if (!fresh_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cuaudit::harness
