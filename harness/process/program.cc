// SPDX-License-Identifier: MIT
#include "harness/process/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "faults/driver/runtime_file.h"
#include "harness/process/files.h"

namespace cuaudit::harness {
namespace {

// A structure at `offset`; empty when the file is too short to hold it.
template <typename T>
std::optional<T> At(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes), header_(At<Elf64_Ehdr>(bytes, 0)) {}

  bool Valid() const {
    return header_.has_value() && std::memcmp(header_->e_ident, ELFMAG, SELFMAG) == 0 && header_->e_ident[EI_CLASS] == ELFCLASS64;
  }

  std::optional<Elf64_Phdr> Segment(std::uint32_t type) const {
    for (std::uint64_t i = 0; i < header_->e_phnum; ++i) {
      const std::optional<Elf64_Phdr> row = At<Elf64_Phdr>(bytes_, header_->e_phoff + i * sizeof(Elf64_Phdr));
      if (row.has_value() && row->p_type == type) return row;
    }
    return std::nullopt;
  }

  std::optional<std::uint64_t> FileOffset(std::uint64_t address) const {
    for (std::uint64_t i = 0; i < header_->e_phnum; ++i) {
      const std::optional<Elf64_Phdr> row = At<Elf64_Phdr>(bytes_, header_->e_phoff + i * sizeof(Elf64_Phdr));
      if (!row.has_value() || row->p_type != PT_LOAD) continue;
      if (address >= row->p_vaddr && address - row->p_vaddr < row->p_filesz) return address - row->p_vaddr + row->p_offset;
    }
    return std::nullopt;
  }

  std::string_view Text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const std::string_view rest = bytes_.substr(offset);
    const std::size_t end = rest.find('\0');
    return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
  }

  // Calls visit(tag, value) for every row of the dynamic section.
  template <typename Visit>
  void Dynamic(Visit visit) const {
    const std::optional<Elf64_Phdr> segment = Segment(PT_DYNAMIC);
    if (!segment.has_value()) return;
    for (std::uint64_t at = 0; at < segment->p_filesz; at += sizeof(Elf64_Dyn)) {
      const std::optional<Elf64_Dyn> row = At<Elf64_Dyn>(bytes_, segment->p_offset + at);
      if (!row.has_value() || row->d_tag == DT_NULL) return;
      visit(row->d_tag, row->d_un.d_val);
    }
  }

 private:
  std::string_view bytes_;
  std::optional<Elf64_Ehdr> header_;
};

// Null when `path` can be executed, otherwise what is wrong with it.
const char* WhyNotExecutable(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return errno == ENOENT || errno == ENOTDIR ? "not found" : std::strerror(errno);
  if (S_ISDIR(facts.st_mode)) return "is a directory";
  if (!S_ISREG(facts.st_mode)) return "not a regular file";
  if (access(path.c_str(), X_OK) != 0) return "not executable";
  return nullptr;
}

}  // namespace

void ReadElf(std::string_view bytes, Program* program) {
  const Elf elf(bytes);
  if (!elf.Valid()) return;
  program->is_static = !elf.Segment(PT_INTERP).has_value();
  std::optional<std::uint64_t> strings;
  elf.Dynamic([&](std::int64_t tag, std::uint64_t value) {
    if (tag == DT_STRTAB) strings = elf.FileOffset(value);
  });
  if (!strings.has_value()) return;
  elf.Dynamic([&](std::int64_t tag, std::uint64_t value) {
    if (tag != DT_NEEDED) return;
    const std::string_view needed = elf.Text(*strings + value);
    if (driver::RuntimeFileOf(needed).shared) program->cudart = std::string(needed);
    for (const std::string_view sanitizer : {"libasan.so", "liblsan.so", "libtsan.so"}) {
      if (needed.starts_with(sanitizer)) program->asan_library = std::string(needed);
    }
  });
}

std::string PathFrom(const std::string& directory, const std::string& path) {
  return directory.empty() || path.starts_with('/') ? path : directory + "/" + path;
}

Result<Program> ResolveProgram(const std::string& name, const std::string& directory) {
  if (name.empty()) return Status(Exit::Usage, "the program's name is empty");
  Program program;
  const char* reason = "not found";
  if (name.find('/') != std::string::npos) {
    program.path = PathFrom(directory, name);
    reason = WhyNotExecutable(program.path);
  } else {
    const char* const variable = std::getenv("PATH");
    std::string_view rest = variable != nullptr ? variable : "/bin:/usr/bin";
    for (bool more = true; more && reason != nullptr;) {
      const std::size_t colon = rest.find(':');
      more = colon != std::string_view::npos;
      const std::string_view dir = rest.substr(0, colon);
      if (more) rest.remove_prefix(colon + 1);
      const std::string candidate = (dir.empty() ? std::string(".") : std::string(dir)) + "/" + name;
      const char* const why = WhyNotExecutable(candidate);
      if (why == nullptr) program.path = candidate;
      // A later directory may hold a usable file of that name. "not found" must not replace a more precise reason.
      if (why == nullptr || std::string_view(why) != "not found") reason = why;
    }
  }
  if (reason != nullptr) return Status(Exit::Usage, PathFrom(program.path.empty() ? "" : directory, name) + ": " + reason);
  std::error_code error;
  if (!directory.empty()) program.path = std::filesystem::absolute(program.path, error).lexically_normal().string();
  const Result<SparseFile> file = SparseFile::Open(program.path);
  if (file.ok()) ReadElf({static_cast<const char*>(file->data()), file->size()}, &program);
  return program;
}

}  // namespace cuaudit::harness
