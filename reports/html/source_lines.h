// SPDX-License-Identifier: MIT
// source_lines.h: a few lines of a source file around a call, when the file is where the debug information says.
//
//   Owns      the files it has read.
//   Errors    none: what cannot be read has no lines.
//
// A page goes further than the machine that wrote it, and debug information is written by whoever built the program. So only files with the
// name of a source file are read, only below the root of the sources (symbolic links resolved), and none of the system's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/source_root.h"

namespace cuaudit::report::html {

struct Snippet {
  int first = 0;  // number of the first line
  std::vector<std::string> lines;
};

// True for a name that a source file has: "a.cu", "b.py".
bool IsSourceName(const std::string& file);

class SourceLines {
 public:
  // `root` outlives this. Null: no file is read.
  explicit SourceLines(const SourceRoot* root) : root_(root) {}

  std::optional<Snippet> Around(const std::string& file, int line);

 private:
  const std::vector<std::string>& Read(const std::string& file);

  const SourceRoot* root_;
  std::map<std::string, std::vector<std::string>> files_;  // without lines: not found
};

}  // namespace cuaudit::report::html
