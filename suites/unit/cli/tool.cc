// SPDX-License-Identifier: MIT
#include "suites/unit/cli/tool.h"

#include <unistd.h>

#include <algorithm>

#include "suites/support/tool.h"

namespace cuaudit::harness {
namespace {

constexpr int kDeadlineMs = 240000;

Said Run(const std::vector<std::string>& command, const std::vector<std::string>& environment, bool unread) {
  e2e::How how;
  how.environment = environment;
  how.deadline_ms = kDeadlineMs;
  how.unread = unread;
  const e2e::Outcome outcome = e2e::RunCommand(command, how);
  return {outcome.exit < 0 ? 128 + outcome.signal : outcome.exit, outcome.out, outcome.err};
}

std::vector<std::string> CommandOf(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {e2e::Tool()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

Said RunTool(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, bool unprivileged) {
  std::vector<std::string> command = CommandOf(arguments);
  if (unprivileged && geteuid() == 0) command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  return Run(command, environment, false);
}

Said RunToolUnread(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  return Run(CommandOf(arguments), environment, true);
}

bool IsOneLine(const std::string& text) { return !text.empty() && std::count(text.begin(), text.end(), '\n') == 1 && text.back() == '\n'; }

}  // namespace cuaudit::harness
