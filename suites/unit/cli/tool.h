// SPDX-License-Identifier: MIT
// tool.h: runs cuaudit as a user does and keeps its output.
#pragma once

#include <string>
#include <vector>

namespace cuaudit::harness {

struct Said {
  int status = -1;  // exit status; 128 + signal when it died
  std::string out;
  std::string err;
};

// `environment`: NAME=VALUE lines beside this process's own. As root, `unprivileged` drops to nobody first.
Said RunTool(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}, bool unprivileged = false);

// The same with stdout a pipe that nobody reads; `out` stays empty.
Said RunToolUnread(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

// True when the text is exactly one line.
bool IsOneLine(const std::string& text);

}  // namespace cuaudit::harness
