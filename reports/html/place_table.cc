// SPDX-License-Identifier: MIT
#include "reports/html/place_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "reports/frames.h"

namespace cuaudit::report::html {
namespace {

constexpr std::size_t kMostSources = 5000;  // snippets in one page

std::string NameOf(const Frame& frame) { return frame.function.empty() ? Describe(frame) : frame.function; }

}  // namespace

std::size_t PlaceTable::Row(const Frame& frame) {
  const std::string name = NameOf(frame);
  const auto [known, fresh] =
      known_frames_.try_emplace(fmt::format("{}\n{}\n{}\n{}", frame.line, frame.module, frame.file, name), frames_.size());
  if (fresh) frames_.push_back({name, frame.module, frame.file, frame.line});
  return known->second;
}

bool PlaceTable::TakeSource(const Frame& frame, std::size_t row) {
  if (frames_[row].size() > 4) return true;
  if (sources_.size() >= kMostSources) return false;
  std::optional<Snippet> found = files_.Around(frame.file, frame.line);
  if (!found) return false;
  frames_[row].push_back(sources_.size());
  sources_.push_back({found->first, frame.line, std::move(found->lines)});
  return true;
}

std::size_t PlaceTable::Stack(const std::vector<Frame>& stack) {
  const std::vector<Frame> shown = ShownFrames(stack);
  std::vector<std::size_t> rows;
  rows.reserve(shown.size());
  for (const Frame& frame : shown) rows.push_back(Row(frame));
  const auto [known, fresh] = known_stacks_.try_emplace(rows, stacks_.size());
  if (!fresh) return known->second;
  stacks_.push_back(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (TakeSource(shown[i], rows[i])) break;
  }
  return known->second;
}

namespace {

constexpr int kContext = 2;  // lines before and after
constexpr std::size_t kLongestLine = 300;
constexpr std::uintmax_t kLargestFile = std::uintmax_t{4} << 20U;
constexpr std::size_t kMostLines = 200000;
constexpr std::array<std::string_view, 17> kExtensions = {".c",   ".cc",  ".cpp", ".cxx", ".cu", ".h",  ".hh",  ".hpp", ".hxx",
                                                          ".cuh", ".inl", ".ipp", ".py",  ".rs", ".go", ".f90", ".jl"};

// True for a name that a source file has: "a.cu", "b.py".
bool IsSourceName(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

}  // namespace

const std::vector<std::string>& SourceLines::Read(const std::string& file) {
  const auto [known, fresh] = files_.try_emplace(file);
  std::vector<std::string>& lines = known->second;
  if (!fresh) return lines;
  std::error_code error;
  const std::string path = root_->FileOf(file);
  if (!IsSourceName(path) || !std::filesystem::is_regular_file(path, error)) return lines;
  if (std::filesystem::file_size(path, error) > kLargestFile) return lines;
  std::ifstream text(path, std::ios::binary);
  for (std::string line; lines.size() < kMostLines && std::getline(text, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    line.resize(std::min(line.size(), kLongestLine));
    lines.push_back(line);
  }
  return lines;
}

std::optional<Snippet> SourceLines::Around(const std::string& file, int line) {
  if (root_ == nullptr || line <= 0 || file.empty() || file.find('\0') != std::string::npos || file.starts_with("/usr/") ||
      !IsSourceName(file))
    return std::nullopt;
  const std::vector<std::string>& lines = Read(file);
  if (static_cast<std::size_t>(line) > lines.size()) return std::nullopt;
  const int first = std::max(1, line - kContext);
  const int last = std::min(static_cast<int>(lines.size()), line + kContext);
  return Snippet{first, {lines.begin() + first - 1, lines.begin() + last}};
}

}  // namespace cuaudit::report::html
