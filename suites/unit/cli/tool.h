// SPDX-License-Identifier: MIT
// tool.h: runs cuaudit as a user does and keeps its output.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "suites/support/tool.h"

namespace cuaudit::harness {

struct Said {
  int status = -1;  // exit status; 128 + signal when it died
  std::string out;
  std::string err;
};

inline Said SaidBy(const std::vector<std::string>& command, const std::vector<std::string>& environment, bool unread) {
  e2e::How how = {.environment = environment, .deadline_ms = 240000, .unread = unread};
  const e2e::CommandResult outcome = e2e::RunCommand(command, how);
  return {outcome.exit < 0 ? 128 + outcome.signal : outcome.exit, outcome.out, outcome.err};
}

inline std::vector<std::string> ToolWith(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {e2e::Tool()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// `environment`: NAME=VALUE lines beside this process's own. As root, `unprivileged` drops to nobody first.
inline Said RunTool(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
                    bool unprivileged = false) {
  std::vector<std::string> command = ToolWith(arguments);
  if (unprivileged && geteuid() == 0) command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  return SaidBy(command, environment, false);
}

// The same with stdout a pipe that nobody reads; `out` stays empty.
inline Said RunToolUnread(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {}) {
  return SaidBy(ToolWith(arguments), environment, true);
}

// True when the text is exactly one line.
inline bool IsOneLine(const std::string& text) {
  return !text.empty() && std::count(text.begin(), text.end(), '\n') == 1 && text.back() == '\n';
}

}  // namespace cuaudit::harness
