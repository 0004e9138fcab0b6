// SPDX-License-Identifier: MIT
#include "reports/source_root.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "reports/frames.h"

namespace cuaudit::report {
namespace {

namespace fs = std::filesystem;

fs::path Resolved(const fs::path& path) {
  std::error_code error;
  fs::path resolved = fs::weakly_canonical(path, error);  // resolves what exists and normalises the rest
  return error ? path.lexically_normal() : resolved;
}

}  // namespace

SourceRoot::SourceRoot(const std::string& folder) {
  std::error_code error;
  const fs::path absolute = fs::absolute(folder, error);
  root_ = Resolved(error ? fs::path(folder) : absolute).string();
}

const std::string& SourceRoot::PathOf(const std::string& file) const {
  const auto [entry, added] = paths_.try_emplace(file);
  std::string& path = entry->second;
  if (!added || file.empty() || file.find('\0') != std::string::npos) return path;
  const fs::path root(root_);
  const fs::path below = Resolved(root / file).lexically_relative(root);  // root / an absolute name is that name
  if (!below.empty() && below != "." && *below.begin() != "..") path = below.generic_string();
  return path;
}

std::string SourceRoot::FileOf(const std::string& file) const {
  if (file.empty() || file.find('\0') != std::string::npos) return {};
  std::error_code error;
  const fs::path root(root_);
  const fs::path whole = fs::canonical(root / file, error);
  if (error) return {};
  const fs::path below = whole.lexically_relative(root);
  return below.empty() || below == "." || *below.begin() == ".." ? std::string() : whole.string();
}

std::optional<SourcePlace> SourceRoot::Find(const Frame& frame) const {
  if (IsRuntimeModule(frame.module)) return std::nullopt;
  const std::string& path = PathOf(frame.file);
  if (path.empty()) return std::nullopt;
  return SourcePlace{path, std::max(frame.line, 1)};
}

std::optional<SourcePlace> SourceRoot::Find(const std::vector<Frame>& stack) const {
  for (const Frame& frame : stack) {
    if (std::optional<SourcePlace> place = Find(frame)) return place;
  }
  return std::nullopt;
}

}  // namespace cuaudit::report
