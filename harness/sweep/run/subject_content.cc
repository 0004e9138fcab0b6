// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "harness/process/files.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/run/rehearsal.h"
#include "harness/verdict/evidence/site_keys.h"

namespace cuaudit::harness {
namespace {

constexpr off_t kBlock = off_t{1} << 20U;

// A word at a time, because programs and their libraries have many megabytes. HashNumber takes eight steps for a word.
std::uint64_t MixBlock(std::string_view bytes, std::uint64_t hash) {
  const std::size_t whole = bytes.size() / sizeof(std::uint64_t) * sizeof(std::uint64_t);
  for (const char *at = bytes.data(), *const end = at + whole; at != end; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32U;
  }
  return HashText(bytes.substr(whole), hash);
}

// Hashes the bytes from `begin` to `end`, or to the end of the file if that comes first.
std::uint64_t MixRange(int file, off_t begin, off_t end, std::uint64_t hash) {
  char block[1 << 16];
  for (off_t at = begin; at < end;) {
    std::size_t filled = 0;
    const std::size_t wanted = std::min(sizeof(block), static_cast<std::size_t>(end - at));
    while (filled < wanted) {
      const ssize_t got = pread(file, block + filled, wanted - filled, at + static_cast<off_t>(filled));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      filled += static_cast<std::size_t>(got);
    }
    hash = MixBlock({block, filled}, hash);
    if (filled < wanted) break;
    at += static_cast<off_t>(filled);
  }
  return hash;
}

std::uint64_t SizeAndTime(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return 0;
  std::uint64_t hash = HashNumber(static_cast<std::uint64_t>(facts.st_size), kHashSeed);
  hash = HashNumber(static_cast<std::uint64_t>(facts.st_mtim.tv_sec), hash);
  return HashNumber(static_cast<std::uint64_t>(facts.st_mtim.tv_nsec), hash);
}

}  // namespace

std::uint64_t FileContent(const std::string& path) {
  struct stat facts = {};
  // The type is checked before opening, because opening a pipe would wait for its other end.
  if (stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return 0;
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return 0;
  const std::uint64_t hash = HashNumber(static_cast<std::uint64_t>(facts.st_size), kHashSeed);
  if (static_cast<std::size_t>(facts.st_size) <= kWholeBytes) return MixRange(file.get(), 0, facts.st_size, hash);
  return MixRange(file.get(), facts.st_size - kBlock, facts.st_size, MixRange(file.get(), 0, kBlock, hash));
}

std::uint64_t SubjectContent(const Subject& subject, const Rehearsal& rehearsal) {
  std::uint64_t hash = HashNumber(FileContent(subject.program.path), kHashSeed);
  for (std::size_t i = 1; i < subject.command.size(); ++i) {
    if (rehearsal.outputs.contains(i)) continue;
    const std::string& word = subject.command[i];
    const std::size_t equals = word.find('=');
    hash = HashNumber(FileContent(PathFrom(subject.directory, word)), hash);
    if (equals != std::string::npos) hash = HashNumber(FileContent(PathFrom(subject.directory, word.substr(equals + 1))), hash);
  }
  return rehearsal.drifting ? hash : HashNumber(ModulesContent(rehearsal), hash);
}

std::uint64_t ModulesContent(const Rehearsal& rehearsal) {
  std::uint64_t hash = kHashSeed;
  std::vector<std::uint64_t> modules;
  const faults::JournalView& journal = rehearsal.run.journal;
  for (std::size_t i = 0; i < journal.modules().size(); ++i) {
    const std::string_view path = journal.ModulePath(i);
    if (path.empty()) continue;  // a free row: a packed journal has none
    const auto id = journal.ModuleBuildId(i);
    const std::string_view bytes(reinterpret_cast<const char*>(id.data()), id.size());
    modules.push_back(id.empty() ? SizeAndTime(std::string(path)) : HashText(bytes));
  }
  // Threads may reach the modules in another order in the next run.
  std::sort(modules.begin(), modules.end());
  for (const std::uint64_t module : modules) hash = HashNumber(module, hash);
  return hash;
}

std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& word : subject.command) hash = HashText(word, hash);
  hash = HashText(OptionsText(subject.launch, "", {}), hash);
  hash = HashNumber(subject.launch.stack_depth, hash);
  hash = HashNumber(static_cast<std::uint64_t>(subject.expected_exit), hash);
  hash = HashNumber(judge.abandoned_is_leak ? 1 : 0, hash);
  hash = HashNumber(SubjectContent(subject, rehearsal), hash);
  // A program that never does the same twice is only identified by its command line and its content.
  return rehearsal.same_work ? HashNumber(TraceHash(rehearsal.run.evidence()), hash) : hash;
}

}  // namespace cuaudit::harness
