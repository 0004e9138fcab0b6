// SPDX-License-Identifier: MIT
// tool.h: runs the real cuaudit and the fixture programs as child processes and reads their output.
//
// Each child, with the process group that it leads, ends before RunCommand returns. A process that misses its deadline is killed and
// reported as timed_out; one that cannot be started has exit 127. Waits by poll on a pidfd and on the pipes; nothing sleeps. Times are
// in milliseconds.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cuaudit::e2e {

inline constexpr int kDeadlineMs = 30000;

struct CommandResult {
  int exit = -1;  // -1: ended by `signal`
  int signal = 0;
  bool timed_out = false;
  std::string out;
  std::string err;
};

struct How {
  std::vector<std::string> environment = {};  // NAME=VALUE, replaces what is inherited
  std::string directory = {};                 // where the command runs; empty: here
  int deadline_ms = kDeadlineMs;
  bool unread = false;  // stdout is a pipe that nobody reads, and CommandResult::out stays empty
  int stderr_room = 0;  // bytes in the pipe of stderr, which is read only when the command has ended; 0: it is read at once
};

// A command under way; its first line of stdout or stderr can be waited for.
class Spawned {
 public:
  explicit Spawned(const std::vector<std::string>& command, const How& how = {});
  Spawned(const Spawned&) = delete;
  Spawned& operator=(const Spawned&) = delete;
  ~Spawned();

  pid_t pid() const { return pid_; }
  void Kill(int signal) const;
  CommandResult Wait();

 private:
  pid_t pid_ = -1;
  int exited_ = -1;
  int out_ = -1;
  int err_ = -1;
  int deadline_ms_;
  bool reads_late_;
};

CommandResult RunCommand(const std::vector<std::string>& command, const How& how = {});

std::string Tool();                            // path of cuaudit
std::string DropInDirectory();                 // where libcuda.so.1 lies
std::string Program(const std::string& name);  // path of a fixture program
std::string TemporaryDirectory();              // fresh, removed when the test program ends

// `cuaudit ARGS --driver=sim --format json --output FILE -- PROGRAM`: the report apart from whatever the program prints.
struct Audit {
  CommandResult outcome;
  nlohmann::json report;  // null when none was written

  std::string verdicts() const { return report.is_null() ? "no report" : report["totals"]["verdicts"].dump(); }
  std::string result() const { return report.is_null() ? "no report" : report["outcome"].get<std::string>(); }
  std::uint64_t calls() const { return report.is_null() ? 0 : report["totals"]["calls"].get<std::uint64_t>(); }
  // "rule kind count" of each finding, sorted and joined by commas.
  std::string findings() const;
};
Audit RunAudit(std::vector<std::string> arguments, const std::vector<std::string>& program, const How& how = {});

// True for a row of `cuaudit cycles` with what the driver keeps for itself: no call of the program acquired it.
bool IsTheDriversOwn(const nlohmann::json& row);

// "a b" -> {"a", "b"}
std::vector<std::string> Words(const std::string& line);
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// Blocks until the file `name` in the directory that `watch` (inotify) looks at was written `changes` times; false at the deadline.
bool WaitForWrites(int watch, const std::string& name, int changes);

// How many lines; text that ends without a line feed counts as one more.
std::size_t LineCount(const std::string& text);

}  // namespace cuaudit::e2e
