// SPDX-License-Identifier: MIT
#include "harness/compare/result_files.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "harness/compare/suppressions.h"
#include "reports/audit_json.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kIndexName = report::kAuditFile;

// The first bytes of a file; empty when it is no regular file.
std::string Beginning(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::array<char, 512> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(file.gcount())};
}

// JSON begins with a brace, after blanks.
bool LooksLikeArchive(std::string_view bytes) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && bytes[first] != '{' && bytes[first] != '[';
}

struct CloseArchive {
  void operator()(archive* one) const { archive_read_free(one); }
};

// The files of an archive whose names end in .json, by their path in it. Nothing is written to disk, so no name can lead out of a
// directory.
Result<std::map<std::string, std::string>> FilesOf(const std::string& path) {
  const std::unique_ptr<archive, CloseArchive> reader(archive_read_new());
  const Status wrong(Exit::Usage, path + ": expected a result directory, a JSON report, or a tar or zip archive of a result directory");
  if (reader == nullptr) return Status(Exit::Failure, path + ": no memory to read it");
  // Not all that the library knows: for some it would start a program from PATH.
  if (archive_read_support_filter_gzip(reader.get()) != ARCHIVE_OK || archive_read_support_filter_bzip2(reader.get()) != ARCHIVE_OK ||
      archive_read_support_filter_xz(reader.get()) != ARCHIVE_OK || archive_read_support_filter_zstd(reader.get()) != ARCHIVE_OK) {
    return Status(Exit::Failure, path + ": this libarchive cannot unpack gzip, bzip2, xz and zstd itself");
  }
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  constexpr std::size_t kBlock = std::size_t{1} << 16U;
  const Status cut(Exit::Usage, path + ": expected a whole archive of a result directory");
  if (archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK) {
    // What is unpacked decides the format, so a compressed archive that is cut fails here.
    return archive_filter_code(reader.get(), 0) == ARCHIVE_FILTER_NONE ? wrong : cut;
  }
  std::map<std::string, std::string> files;
  std::size_t whole = 0;
  for (;;) {
    archive_entry* entry = nullptr;
    const int next = archive_read_next_header(reader.get(), &entry);
    if (next == ARCHIVE_EOF) break;
    if (next != ARCHIVE_OK && next != ARCHIVE_WARN) return files.empty() ? wrong : cut;
    const char* const name = archive_entry_pathname(entry);
    if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG || !std::string_view(name).ends_with(".json")) continue;
    std::string& bytes = files[name];
    bytes.clear();
    std::array<char, 16384> part{};
    for (;;) {
      const la_ssize_t got = archive_read_data(reader.get(), part.data(), part.size());
      if (got == 0) break;
      if (got < 0) return cut;
      whole += static_cast<std::size_t>(got);
      if (whole > report::kMostReportBytes) return Status(Exit::Usage, path + ": expected reports of at most 1 GiB in all");
      bytes.append(part.data(), static_cast<std::size_t>(got));
    }
  }
  return files;
}

Result<report::Audit> ReadArchive(const std::string& path, const report::ReadSoFar& told) {
  const Result<std::map<std::string, std::string>> files = FilesOf(path);
  if (!files.ok()) return files.status();
  // The directory of the result may be any in the archive; of several the outermost.
  std::string index;
  for (const auto& [name, bytes] : *files) {
    const std::size_t slash = name.rfind('/');
    if (name.substr(slash == std::string::npos ? 0 : slash + 1) != kIndexName) continue;
    if (index.empty() || std::count(name.begin(), name.end(), '/') < std::count(index.begin(), index.end(), '/')) index = name;
  }
  if (index.empty()) return Status(Exit::Usage, path + ": expected a file audit.json in the archive");
  const std::string directory = index.substr(0, index.size() - kIndexName.size());
  const report::ReadNamed read = [&](const std::string& name, std::string* bytes) -> std::string {
    const auto found = files->find(directory + name);
    if (found == files->end()) return "no such file in the archive";
    *bytes = found->second;
    return {};
  };
  report::Audit audit;
  const std::string expected = report::ReadAuditFiles(read, &audit, told);
  if (!expected.empty()) return Status(Exit::Usage, path + ": " + expected);
  audit.from_archive = true;
  return audit;
}

Result<report::Audit> ReadAnyResult(const std::string& path, const report::ReadSoFar& told) {
  const std::string beginning = Beginning(path);
  if (IsBaseline(beginning)) return Status(Exit::Usage, path + ": expected a result; a baseline file can only be the base");
  if (LooksLikeArchive(beginning)) return ReadArchive(path, told);
  report::Audit audit;
  const std::string expected = report::ReadAudit(path, &audit, told);
  if (!expected.empty()) return Status(Exit::Usage, expected);
  return audit;
}

}  // namespace

Result<report::Audit> ReadResult(const std::string& path, const report::ReadSoFar& told) {
  if (const Status known = CheckToday(); !known.ok()) return known;
  Result<report::Audit> audit = ReadAnyResult(path, told);
  if (!audit.ok()) return audit;
  const std::string today = Today();
  for (report::Case& one : audit->cases) {
    for (report::Run& run : one.runs) ExpireSuppressed(today, &run);
  }
  return audit;
}

Result<Base> ReadBase(const std::string& path, const report::ReadSoFar& told) {
  const std::string beginning = Beginning(path);
  if (!IsBaseline(beginning) && !IsConflict(beginning)) {
    Result<report::Audit> audit = ReadResult(path, told);
    if (!audit.ok()) return audit.status();
    return BaseOf(path, std::move(*audit));
  }
  Result<Baseline> known = ReadBaseline(path);
  if (!known.ok()) return known.status();
  return Base{path, std::move(known->defects), std::move(known->runs), {}};
}

Result<Baseline> ReadBaseline(const std::string& path) {
  std::string bytes;
  const std::string error = report::ReadReportFile(path, &bytes);
  if (!error.empty()) return Status(Exit::Usage, path + ": " + error);
  return ParseBaseline(bytes, path);
}

}  // namespace cuaudit::harness
