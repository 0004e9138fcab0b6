// SPDX-License-Identifier: MIT
#include "harness/process/work_dir.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/process/program.h"

namespace cuaudit::harness {

namespace {

// On a disk every touched page of a sparse journal goes through the page cache, and the kernel may write it out.
constexpr const char* kMemory = "/dev/shm";
constexpr std::uintmax_t kSpareBytes = std::uintmax_t{1} << 30U;
constexpr std::string_view kPrefix = "cuaudit-";
// Content of the lock file of a directory that may be removed.
constexpr std::string_view kTransient = "removed by the next cuaudit once nobody holds this lock\n";
constexpr std::size_t kMostLooked = 10000;
constexpr std::size_t kMostRemoved = 64;

std::string Chosen() { return VariableOf("TMPDIR"); }

std::string FreshParent() {
  if (!Chosen().empty()) return Chosen();
  std::vector<std::string> parents = {"/tmp", "/var/tmp"};
  const std::string cache = VariableOf("XDG_CACHE_HOME");
  const std::string home = VariableOf("HOME");
  if (!cache.empty()) parents.push_back(cache);
  if (!home.empty()) parents.push_back(home + "/.cache");
  const std::string disk = WorkDir::OnDisk(parents);
  return disk.empty() ? parents.front() : disk;
}

bool HasSpareMemory() {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(kMemory, error);
  return !error && space.available >= kSpareBytes && access(kMemory, W_OK) == 0;
}

// Removes a directory that a cuaudit of this user made and meant to remove, and that nobody has locked. The maker holds the lock until it
// has written this down.
bool RemoveIfStale(const std::filesystem::path& path) {
  struct stat dir = {};
  if (lstat(path.c_str(), &dir) != 0 || !S_ISDIR(dir.st_mode) || dir.st_uid != geteuid()) return false;
  const std::string lock = path / "lock";
  const FileDescriptor file(open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat held = {};
  if (!file.valid() || flock(file.get(), LOCK_EX | LOCK_NB) != 0 || fstat(file.get(), &held) != 0) return false;
  char text[kTransient.size() + 1];
  const ssize_t got = pread(file.get(), text, sizeof(text), 0);
  if (got != static_cast<ssize_t>(kTransient.size()) || std::string_view(text, kTransient.size()) != kTransient) return false;
  // Another process may have removed the directory meanwhile, and a third may have made a new one with the same name.
  struct stat named = {};
  if (lstat(lock.c_str(), &named) != 0 || named.st_ino != held.st_ino || named.st_dev != held.st_dev) return false;
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return !error;
}

std::size_t RemoveStaleIn(const std::string& parent) {
  std::size_t removed = 0;
  std::size_t looked = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (++looked > kMostLooked || removed == kMostRemoved) break;
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    removed += RemoveIfStale(entry->path()) ? 1 : 0;
  }
  return removed;
}

}  // namespace

std::size_t WorkDir::RemoveStale() {
  if (!Chosen().empty()) return RemoveStaleIn(Chosen());
  std::size_t removed = 0;
  for (const std::string& parent : std::set<std::string>{kMemory, "/tmp", FreshParent()}) removed += RemoveStaleIn(parent);
  return removed;
}

bool WorkDir::InMemory(const std::string& path) {
  struct statfs facts = {};
  return statfs(path.c_str(), &facts) == 0 && (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
}

std::string WorkDir::OnDisk(std::span<const std::string> parents) {
  const auto found = std::find_if(parents.begin(), parents.end(), [](const std::string& parent) {
    std::error_code error;
    return std::filesystem::is_directory(parent, error) && access(parent.c_str(), W_OK | X_OK) == 0 && !InMemory(parent);
  });
  return found == parents.end() ? std::string() : *found;
}

Result<WorkDir> WorkDir::Fresh(const std::string& parent, bool keep) {
  WorkDir dir;
  std::string pattern = parent + "/" + std::string(kPrefix) + "XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return Status(Exit::Usage, pattern + ": cannot create: " + SystemWords(errno));
  std::error_code error;
  dir.path_ = std::filesystem::absolute(pattern, error).string();
  dir.fresh_ = true;
  Status locked = dir.Lock(keep);
  if (!locked.ok()) {
    dir.Remove();
    return locked;
  }
  return dir;
}

Result<WorkDir> WorkDir::Open(const std::string& path, bool in_memory, bool keep) {
  if (path.empty()) {
    Result<WorkDir> dir = Fresh(FreshParent(), keep);
    if (!dir.ok() || keep || !in_memory || !Chosen().empty() || !HasSpareMemory()) return dir;
    Result<WorkDir> memory = Fresh(kMemory, keep);
    if (memory.ok()) dir->memory_ = std::make_unique<WorkDir>(std::move(*memory));
    return dir;
  }
  WorkDir dir;
  std::error_code error;
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return Status(Exit::Usage, path + ": cannot create the work directory: " + SystemWords(errno));
  }
  if (!std::filesystem::is_directory(path, error)) return Status(Exit::Usage, path + ": the work directory is not a directory");
  dir.path_ = std::filesystem::canonical(path, error).string();
  if (error) return Status(Exit::Usage, path + ": cannot open the work directory: " + error.message());
  Status locked = dir.Lock(keep);
  if (!locked.ok()) return locked;
  return dir;
}

Status WorkDir::Lock(bool keep) {
  if (path_.find(';') != std::string::npos) return Status(Exit::Usage, path_ + ": a work directory may have no ';' in its path");
  const std::string lock = File("lock");
  lock_ = FileDescriptor(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_.valid()) return Status(Exit::Usage, path_ + ": cannot write into the work directory: " + SystemWords(errno));
  // A child of a sweep that was just killed may hold the lock until it is dead, too.
  constexpr int kTries = 25;
  constexpr useconds_t kPauseUs = 20000;
  int locked = flock(lock_.get(), LOCK_EX | LOCK_NB);
  for (int i = 1; i < kTries && locked != 0 && errno == EWOULDBLOCK; ++i) {
    usleep(kPauseUs);
    locked = flock(lock_.get(), LOCK_EX | LOCK_NB);
  }
  if (locked != 0) {
    if (errno == EWOULDBLOCK) return Status(Exit::Usage, path_ + ": another cuaudit is using this work directory");
    return Status(Exit::Failure, lock + ": cannot lock: " + SystemWords(errno));
  }
  // A directory that the user names belongs to the user from then on, whoever made it.
  if (ftruncate(lock_.get(), 0) != 0) return Status(Exit::Failure, lock + ": cannot write: " + SystemWords(errno));
  return fresh_ && !keep ? WriteAll(lock_.get(), kTransient, lock) : Status();
}

void WorkDir::Remove() const noexcept {
  if (memory_ != nullptr) memory_->Remove();
  if (!fresh_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cuaudit::harness
