// SPDX-License-Identifier: MIT
#include "suites/unit/cli/tool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "harness/process/files.h"
#include "suites/support/temporary_dir.h"

namespace cuaudit::harness {
namespace {

constexpr uid_t kNobody = 65534;

[[noreturn]] void Become(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, int out, int err,
                         bool unprivileged) {
  std::vector<char*> words = {const_cast<char*>(CUAUDIT_TOOL)};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  for (const std::string& line : environment) {
    const std::size_t equals = line.find('=');
    setenv(line.substr(0, equals).c_str(), line.substr(equals + 1).c_str(), 1);
  }
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  if (unprivileged && geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(126);
  execv(CUAUDIT_TOOL, words.data());
  _exit(127);
}

// `out` is the tool's stdout; what it said there is the caller's to read.
Said RunInto(int out, const std::vector<std::string>& arguments, const std::vector<std::string>& environment, bool unprivileged) {
  const TemporaryDir dir;
  const FileDescriptor err(open(dir.File("err").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const pid_t pid = fork();
  if (pid == 0) Become(arguments, environment, out, err.get(), unprivileged);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  Said said;
  said.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  said.err = *ReadFile(dir.File("err"));
  return said;
}

}  // namespace

Said RunTool(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, bool unprivileged) {
  const TemporaryDir dir;
  const FileDescriptor out(open(dir.File("out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  Said said = RunInto(out.get(), arguments, environment, unprivileged);
  said.out = *ReadFile(dir.File("out"));
  return said;
}

Said RunToolUnread(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor out(ends[1]);
  close(ends[0]);
  return RunInto(out.get(), arguments, environment, false);
}

bool IsOneLine(const std::string& text) { return !text.empty() && std::count(text.begin(), text.end(), '\n') == 1 && text.back() == '\n'; }

}  // namespace cuaudit::harness
