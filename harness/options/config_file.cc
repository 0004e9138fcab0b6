// SPDX-License-Identifier: MIT
#include "harness/options/config_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "harness/process/files.h"

namespace cuaudit::harness {

std::string WhyNoConfig(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20U;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};  // the reader of the file reports this
  if (!std::filesystem::is_regular_file(path, error)) return path + ": expected a regular file";
  if (std::filesystem::file_size(path, error) > kMostBytes) return path + ": expected at most 1 MiB";
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status().message();
  const auto strange = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f; };
  const auto found = std::find_if(text->begin(), text->end(), strange);
  if (found == text->end()) return {};
  return path + ": line " + std::to_string(1 + std::count(text->begin(), found, '\n')) + ": expected text, options in TOML";
}

}  // namespace cuaudit::harness
