// SPDX-License-Identifier: MIT
// source_root.h: finds source files of call stacks below the folder that a CI system shows, which is the root of a repository.
//
//   Owns      what it has found out about each file.
//   Threads   one thread.
//   Errors    never fails. A file that cannot be looked at is taken by its name alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/run.h"

namespace cuaudit::report {

struct SourcePlace {
  std::string path;  // below the root, with '/' between the parts; any bytes
  int line = 1;
};

class SourceRoot {
 public:
  // Symbolic links in `folder` and in the names of source files are resolved. A source file whose name is relative lies below the root.
  explicit SourceRoot(const std::string& folder);

  // Absent when the source file is unknown, lies elsewhere or belongs to the C or C++ runtime.
  std::optional<SourcePlace> Find(const Frame& frame) const;

  // The innermost frame whose source file lies below the root.
  std::optional<SourcePlace> Find(const std::vector<Frame>& stack) const;

  // The source file without symbolic links, for who reads it. Empty when it is not there or lies elsewhere.
  std::string FileOf(const std::string& file) const;

 private:
  const std::string& PathOf(const std::string& file) const;

  std::string root_;
  mutable std::map<std::string, std::string> paths_;  // name in a stack -> path below the root; empty: it lies elsewhere
};

}  // namespace cuaudit::report
