// SPDX-License-Identifier: MIT
// pythons.h: the CPython interpreters of this machine, found as a person would find them: on PATH, and where pyenv keeps its versions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cuaudit::testing {

// Paths where a `python3.MINOR` may be. Some may be scripts that start another one, or refuse to.
inline std::vector<std::string> PythonCandidates(int minor) {
  const std::string name = "python3." + std::to_string(minor);
  std::vector<std::string> found;
  const auto add = [&](const std::filesystem::path& directory) {
    std::error_code none;
    if (std::filesystem::exists(directory / name, none)) found.push_back(directory / name);
  };
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  for (std::size_t end = 0; !rest.empty(); rest = end == std::string::npos ? "" : rest.substr(end + 1)) {
    end = rest.find(':');
    add(rest.substr(0, end));
  }
  for (const char* const variable : {"PYENV_ROOT", "HOME"}) {
    const char* const root = std::getenv(variable);
    if (root == nullptr) continue;
    const std::filesystem::path versions = std::filesystem::path(root) / (variable[0] == 'H' ? ".pyenv/versions" : "versions");
    std::error_code none;
    for (const auto& version : std::filesystem::directory_iterator(versions, none)) add(version.path() / "bin");
  }
  return found;
}

}  // namespace cuaudit::testing
