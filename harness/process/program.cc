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

#include "faults/driver/foreign_runtime.h"
#include "harness/process/files.h"
#include "reports/message.h"

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

namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH=";
constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::string_view kOptions = "CUAUDIT_OPTIONS=";

std::string Joined(std::string_view prefix, std::string_view ours, std::string_view theirs) {
  std::string line(prefix);
  line += ours;
  if (!theirs.empty()) line.append(":").append(theirs);
  return line;
}

}  // namespace

std::string_view LibraryOf(HostProbes probes) noexcept {
  switch (probes) {
    case HostProbes::None:
      return {};
    case HostProbes::Basic:
      return "libcuaudit_host_basic.so";
    case HostProbes::Heap:
      return "libcuaudit_host.so";
  }
  return {};
}

std::string OptionsText(const LaunchOptions& options, const std::string& journal, std::span<const std::string> faults) {
  std::string text = "journal=" + journal;
  text.append(";driver=").append(Name(options.driver));
  if (options.driver == DriverKind::Genuine && !options.genuine_driver.empty()) text += ";real_driver=" + options.genuine_driver;
  text += options.pinned_scope ? ";scope=pinned" : ";scope=process";
  constexpr std::string_view kProbes[] = {"none", "basic", "heap"};
  text.append(";host=").append(kProbes[static_cast<std::size_t>(options.host_probes)]);
  if (!options.world.empty()) text += ";" + options.world;
  for (const std::string& fault : faults) text += ";fault=" + fault;
  return text;
}

std::vector<std::string> MakeEnvironment(const LaunchOptions& options, const std::string& asan_library, const std::string& options_text,
                                         std::span<const std::string> base) {
  std::vector<std::string> lines;
  std::string_view library_path;
  std::string_view preload;
  for (const std::string& line : base) {
    const std::string_view view = line;
    if (view.starts_with(kLibraryPath)) {
      library_path = view.substr(kLibraryPath.size());
    } else if (view.starts_with(kPreload)) {
      preload = view.substr(kPreload.size());
    } else if (!view.starts_with(kOptions)) {
      lines.push_back(line);
    }
  }
  std::string libraries;
  if (!asan_library.empty()) libraries = asan_library + ":";
  // The loader initialises the last preload first. So the driver drop-in is ready before the host probes begin to watch it.
  const std::string_view probes = LibraryOf(options.host_probes);
  if (!probes.empty()) libraries.append(options.drop_in_dir).append("/").append(probes).append(":");
  libraries += options.drop_in_dir + "/libcuda.so.1";
  std::string directories = options.drop_in_dir;
  if (options.driver == DriverKind::Simulated) {
    if (!options.cudart.empty()) libraries += ":" + options.cudart;
    if (!options.cudart_dir.empty()) directories += ":" + options.cudart_dir;
  }
  lines.push_back(Joined(kLibraryPath, directories, library_path));
  lines.push_back(Joined(kPreload, libraries, preload));
  lines.push_back(std::string(kOptions) + options_text);
  return lines;
}

Status CheckDropInPath(const std::string& drop_in_dir) {
  if (drop_in_dir.find_first_of(" :;") == std::string::npos) return {};
  return {Exit::Environment, "'" + drop_in_dir + "': the loader takes no library from a directory with a space, ':' or ';' in its path: " +
                                 "install cuaudit elsewhere"};
}

std::string VariableOf(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::vector<std::string>> CurrentEnvironment() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) {
    const std::string_view view = *line;
    if (view.starts_with(kOptions) && view.size() > kOptions.size()) {
      return Status(Exit::Usage,
                    "CUAUDIT_OPTIONS is set in the environment: unset it (eval \"$(cuaudit env --off)\" does), cuaudit sets it for the "
                    "program it starts");
    }
    lines.emplace_back(view);
  }
  return lines;
}

}  // namespace cuaudit::harness
