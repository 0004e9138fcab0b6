// SPDX-License-Identifier: MIT
#include "suites/support/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "reports/words/words.h"

extern char** environ;

namespace cuaudit::e2e {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  std::vector<std::string> lines;
  const auto name = [](const std::string& line) { return line.substr(0, line.find('=') + 1); };
  for (char** line = environ; *line != nullptr; ++line) {
    const bool replaced =
        std::any_of(changes.begin(), changes.end(), [&](const std::string& change) { return name(change) == name(*line); });
    if (!replaced) lines.emplace_back(*line);
  }
  lines.insert(lines.end(), changes.begin(), changes.end());
  return lines;
}

// Reads what there is; false at the end of the stream.
bool Drain(int fd, std::string* text) {
  char bytes[65536];
  const ssize_t got = read(fd, bytes, sizeof(bytes));
  if (got > 0) text->append(bytes, static_cast<std::size_t>(got));
  return got > 0;
}

// Removes what the test program made when it ends.
class Temporaries {
 public:
  ~Temporaries() {
    std::error_code ignored;
    for (const std::string& path : paths_) std::filesystem::remove_all(path, ignored);
  }
  std::string Make() {
    std::string pattern = std::filesystem::temp_directory_path().string() + "/cuaudit-e2e-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return {};
    paths_.push_back(pattern);
    return pattern;
  }

 private:
  std::vector<std::string> paths_;
};

}  // namespace

Spawned::Spawned(const std::vector<std::string>& command, const How& how)
    : deadline_ms_(how.deadline_ms), reads_late_(how.stderr_room != 0) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return;
  if (pipe2(err, O_CLOEXEC) != 0) return;
  if (how.stderr_room != 0 && fcntl(err[1], F_SETPIPE_SZ, how.stderr_room) < 0) return;
  if (how.unread) close(std::exchange(out[0], -1));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  if (!how.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, how.directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Tests started in a shell's background, or by nohup, inherit signals that are ignored.
  sigset_t usual;
  sigemptyset(&usual);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&usual, number);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  const std::vector<std::string> environment = Environment(how.environment);
  if (posix_spawnp(&pid_, command.front().c_str(), &actions, &attributes, Pointers(command).data(), Pointers(environment).data()) != 0) {
    pid_ = -1;
  } else {
    exited_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Spawned::~Spawned() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {exited_, out_, err_}) {
    if (fd >= 0) close(fd);
  }
}

void Spawned::Kill(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

CommandResult Spawned::Wait() {
  CommandResult outcome;
  if (pid_ <= 0) {
    outcome.exit = 127;
    return outcome;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(deadline_ms_);
  bool ended = false;
  pollfd watched[3] = {{out_, POLLIN, 0}, {reads_late_ ? -1 : err_, POLLIN, 0}, {exited_, POLLIN, 0}};
  while (!ended) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0 || poll(watched, 3, static_cast<int>(left)) <= 0) {
      outcome.timed_out = true;
      break;
    }
    if (watched[0].revents != 0 && !Drain(out_, &outcome.out)) watched[0].fd = -1;
    if (watched[1].revents != 0 && !Drain(err_, &outcome.err)) watched[1].fd = -1;
    ended = watched[2].revents != 0;
  }
  // The leader is still a zombie, so its group cannot have been given to strangers.
  kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  // What is in the pipes now is all there is; a process that left the group may still hold them open.
  for (const int fd : {out_, err_}) fcntl(fd, F_SETFL, O_NONBLOCK);
  while (Drain(out_, &outcome.out)) {
  }
  while (Drain(err_, &outcome.err)) {
  }
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (WIFEXITED(status)) outcome.exit = WEXITSTATUS(status);
  return outcome;
}

CommandResult RunCommand(const std::vector<std::string>& command, const How& how) { return Spawned(command, how).Wait(); }

std::string Tool() { return CUAUDIT_TOOL; }
std::string DropInDirectory() { return CUAUDIT_DROP_IN_DIRECTORY; }
std::string Program(const std::string& name) { return std::string(CUAUDIT_PROGRAMS) + "/" + name; }

std::string TemporaryDirectory() {
  static Temporaries temporaries;
  return temporaries.Make();
}

std::string Audit::findings() const {
  if (report.is_null()) return "no report";
  std::vector<std::string> texts;
  for (const nlohmann::json& finding : report["findings"]) {
    texts.push_back(finding["rule"].get<std::string>() + " " + finding["kind"].get<std::string>() + " " + finding["count"].dump());
  }
  std::sort(texts.begin(), texts.end());
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined;
}

Audit RunAudit(std::vector<std::string> arguments, const std::vector<std::string>& program, const How& how) {
  const std::string file = TemporaryDirectory() + "/report.json";
  arguments.insert(arguments.begin(), Tool());
  for (const char* const word : {"--driver=sim", "--format=json", "--output"}) arguments.emplace_back(word);
  arguments.push_back(file);
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), program.begin(), program.end());
  Audit audit = {.outcome = RunCommand(arguments, how), .report = nlohmann::json::parse(ReadFile(file), nullptr, false)};
  if (audit.report.is_discarded()) audit.report = nullptr;
  return audit;
}

bool IsTheDriversOwn(const nlohmann::json& row) {
  return row["acquired"].value("call", std::string()) == words::Words(words::DetailPart{words::Detail::InsideTheDriver});
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

bool WaitForWrites(int watch, const std::string& name, int changes) {
  alignas(inotify_event) char buffer[4096];
  while (changes > 0) {
    pollfd watched = {watch, POLLIN, 0};
    if (poll(&watched, 1, kDeadlineMs) <= 0) return false;
    const ssize_t got = read(watch, buffer, sizeof(buffer));
    for (ssize_t at = 0; at < got;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(buffer + at);
      if (event->len != 0 && name == event->name && (event->mask & IN_MODIFY) != 0) --changes;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
  return true;
}

std::size_t LineCount(const std::string& text) {
  const auto feeds = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return feeds + (text.empty() || text.back() == '\n' ? 0 : 1);
}

}  // namespace cuaudit::e2e
