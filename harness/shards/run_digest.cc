// SPDX-License-Identifier: MIT
#include "harness/shards/run_digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "harness/process/files.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

constexpr off_t kRunBlock = 1 << 16;

Status CannotRead(const std::string& path) { return {Exit::Usage, path + ": cannot read: " + SystemWords(errno)}; }

// A journal is mostly a hole, so that only blocks with data are read, and of these only those that are not all zeros count.
Result<std::uint64_t> DigestOfFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat facts = {};
  if (!file.valid() || fstat(file.get(), &facts) != 0) return CannotRead(path);
  std::uint64_t hash = HashNumber(static_cast<std::uint64_t>(facts.st_size), kHashSeed);
  for (off_t at = 0; at < facts.st_size; at += kRunBlock) {
    const off_t data = lseek(file.get(), at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // only a hole is left
    if (data < 0) return CannotRead(path);
    at = data - data % kRunBlock;
    std::string block(static_cast<std::size_t>(std::min(kRunBlock, facts.st_size - at)), '\0');
    for (std::size_t filled = 0; filled < block.size();) {
      const ssize_t got = pread(file.get(), block.data() + filled, block.size() - filled, at + static_cast<off_t>(filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return CannotRead(path);
      if (got == 0) break;  // cut while it was read: zeros stand for the rest
      filled += static_cast<std::size_t>(got);
    }
    const bool empty = std::all_of(block.begin(), block.end(), [](char byte) { return byte == '\0'; });
    if (!empty) hash = HashText(block, HashNumber(static_cast<std::uint64_t>(at), hash));
  }
  return hash;
}

}  // namespace

Result<RunDigests> DigestRuns(const std::string& directory) {
  RunDigests digests;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    if (name == "lock" || entry->path().extension() == ".log" || !entry->is_regular_file(unknown)) continue;
    const Result<std::uint64_t> digest = DigestOfFile(entry->path().string());
    if (!digest.ok()) return digest.status();
    digests[name] = *digest;
  }
  if (error) return Status(Exit::Usage, directory + ": cannot read the fault-free runs of the plan: " + error.message());
  return digests;
}

Status CheckRuns(const std::string& directory, const RunDigests& planned) {
  const Result<RunDigests> found = DigestRuns(directory);
  if (!found.ok()) return found.status();
  for (const auto& [name, digest] : planned) {
    const auto here = found->find(name);
    if (here == found->end()) return {Exit::Usage, directory + "/" + name + ": missing: expected the file that the plan was made with"};
    if (here->second == digest) continue;
    return {Exit::Usage,
            directory + "/" + name + ": changed after the plan was made: expected digest " + Hex(digest) + ", found " + Hex(here->second)};
  }
  for (const auto& [name, digest] : *found) {
    if (!planned.contains(name)) return {Exit::Usage, directory + "/" + name + ": expected only files that the plan was made with"};
  }
  return {};
}

}  // namespace cuaudit::harness
