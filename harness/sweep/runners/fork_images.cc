// SPDX-License-Identifier: MIT
#include "harness/sweep/runners/fork_images.h"

#include <fcntl.h>
#include <sys/stat.h>
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

// Files that stay open. Each fork that runs needs a descriptor, too, and a process may not have many.
constexpr std::uint32_t kKeptOpen = 64;

FileDescriptor OpenToRead(const std::string& path) { return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

template <typename T>
bool ReadAt(const FileDescriptor& file, std::size_t at, T* to) {
  return pread(file.get(), to, sizeof(*to), static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof(*to));
}

}  // namespace

std::string ForkImages::Trunk(const std::string& name) { return Numbered(name, 0); }

Status ForkImages::Create(std::uint32_t slot) {
  Image& image = images_[slot];
  unlink(image.path.c_str());
  if (const char* const wrong = faults::CreateJournal(image.path.c_str(), options_)) {
    return {Exit::Failure, image.path + ": " + wrong + ": " + SystemWords(errno)};
  }
  if (slot < kKeptOpen) image.file = OpenToRead(image.path);
  return {};
}

Status ForkImages::Make(const std::string& name, std::uint32_t slots, const faults::JournalOptions& options) {
  Remove();
  options_ = options;
  if (slots > faults::kMaxSlots) return {Exit::Usage, "--jobs: too many forks at a time"};
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    images_.push_back({Numbered(name, slot + 1), FileDescriptor()});
    Status created = Create(slot);
    if (!created.ok()) return created;
  }
  return {};
}

template <typename T>
bool ForkImages::Read(std::uint32_t slot, std::size_t at, T* to) const {
  const Image& image = images_[slot];
  return image.file.valid() ? ReadAt(image.file, at, to) : ReadAt(OpenToRead(image.path), at, to);
}

bool ForkImages::Called(std::uint32_t slot) const {
  std::array<std::uint32_t, driver::kBaseCount> calls{};
  return Read(slot, offsetof(faults::JournalHeader, occurrences), &calls) &&
         std::any_of(calls.begin(), calls.end(), [](std::uint32_t count) { return count != 0; });
}

Status ForkImages::Renew(std::uint32_t slot) {
  std::uint64_t records = 1;
  struct stat facts = {};
  const FileDescriptor& file = images_[slot].file;
  const bool removed = file.valid() && (fstat(file.get(), &facts) != 0 || facts.st_nlink == 0);
  if (!removed && Read(slot, offsetof(faults::JournalHeader, next_record), &records) && records == 0) return {};
  return Create(slot);
}

void ForkImages::Remove() {
  for (const Image& image : images_) unlink(image.path.c_str());
  images_.clear();
}

}  // namespace cuaudit::harness
