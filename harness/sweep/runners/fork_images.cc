// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_images.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "faults/driver/call_id.h"
#include "faults/journal/layout.h"
#include "faults/plan/fork_file.h"
#include "harness/process/files.h"

namespace cuaudit::harness {
namespace {

std::string Numbered(const std::string& name, std::uint32_t number) {
  char digits[16];
  std::snprintf(digits, sizeof(digits), "-%0*x", static_cast<int>(faults::kImageDigits), number);
  return name + digits + faults::kImageEnding;
}

template <typename T>
bool ReadAt(const FileDescriptor& file, std::size_t at, T* to) {
  return pread(file.get(), to, sizeof(*to), static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof(*to));
}

}  // namespace

std::string ForkImages::Trunk(const std::string& name) { return Numbered(name, 0); }

Status ForkImages::Make(const std::string& name, std::uint32_t slots, const faults::JournalOptions& options) {
  Remove();
  options_ = options;
  if (slots > faults::kMaxSlots) return {Exit::Usage, "--jobs: too many forks at a time"};
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    paths_.push_back(Numbered(name, slot + 1));
    unlink(paths_.back().c_str());
    if (const char* const wrong = faults::CreateJournal(paths_.back().c_str(), options_)) {
      return {Exit::Failure, paths_.back() + ": " + wrong + ": " + SystemWords(errno)};
    }
  }
  return {};
}

bool ForkImages::Called(std::uint32_t slot) const {
  const FileDescriptor file(open(paths_[slot].c_str(), O_RDONLY | O_CLOEXEC));
  std::array<std::uint32_t, driver::kBaseCount> calls{};
  return file.valid() && ReadAt(file, offsetof(faults::JournalHeader, occurrences), &calls) &&
         std::any_of(calls.begin(), calls.end(), [](std::uint32_t count) { return count != 0; });
}

Status ForkImages::Renew(std::uint32_t slot) {
  {
    const FileDescriptor file(open(paths_[slot].c_str(), O_RDONLY | O_CLOEXEC));
    std::uint64_t records = 1;
    if (file.valid() && ReadAt(file, offsetof(faults::JournalHeader, next_record), &records) && records == 0) return {};
  }
  unlink(paths_[slot].c_str());
  const char* const wrong = faults::CreateJournal(paths_[slot].c_str(), options_);
  if (wrong == nullptr) return {};
  return {Exit::Failure, paths_[slot] + ": " + wrong + ": " + SystemWords(errno)};
}

void ForkImages::Remove() {
  for (const std::string& path : paths_) unlink(path.c_str());
  paths_.clear();
}

}  // namespace cuaudit::harness
