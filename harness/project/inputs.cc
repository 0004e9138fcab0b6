// SPDX-License-Identifier: MIT
#include "harness/project/inputs.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/run/subject_content.h"

namespace cuaudit::harness {
namespace {

namespace fs = std::filesystem;

std::uint64_t AddFile(const fs::path& file, std::uint64_t hash) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (!error && size > kWholeBytes) {
    const auto changed = fs::last_write_time(file, error).time_since_epoch().count();
    if (!error) hash = HashNumber(static_cast<std::uint64_t>(changed), hash);
  }
  return HashNumber(FileContent(file.string()), hash);
}

// A folder that is a symbolic link within `folder` is not entered, so that no circle is followed.
std::uint64_t AddFolder(const fs::path& folder, std::uint64_t hash) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) hash = AddFile(file, HashText(file.string(), hash));
  return hash;
}

}  // namespace

Status CheckInputs(const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::is_regular_file(input, error) && !fs::is_directory(input, error)) {
      return {Exit::Usage, "--inputs: '" + input + "': expected a file or a folder"};
    }
  }
  return {};
}

std::uint64_t InputsContent(const std::vector<std::string>& inputs) {
  std::uint64_t hash = kHashSeed;
  for (const std::string& input : inputs) {
    std::error_code error;
    hash = fs::is_directory(input, error) ? AddFolder(input, hash) : AddFile(input, hash);
  }
  return hash;
}

}  // namespace cuaudit::harness
