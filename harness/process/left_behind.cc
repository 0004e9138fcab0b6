// SPDX-License-Identifier: MIT
#include "harness/process/left_behind.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>

#include "harness/process/files.h"

namespace cuaudit::harness {
namespace {

constexpr int kMostRounds = 64;  // a process that is ended may leave children in turn
constexpr int kPatienceMs = 1000;
constexpr std::string_view kAnyOrigin = "CUAUDIT_OPTIONS=journal=";

// `list` is the file that OpenChildren opened. It is read once or twice for each trial, and opening it would take longer than reading it.
std::vector<pid_t> ReadChildren(const FileDescriptor& list) {
  std::string text;
  char part[4096];
  ssize_t got = 0;
  while (list.valid() && (got = pread(list.get(), part, sizeof(part), static_cast<off_t>(text.size()))) > 0)
    text.append(part, static_cast<std::size_t>(got));
  std::vector<pid_t> children;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (pid_t child = 0; at != end;) {
    const std::from_chars_result read = std::from_chars(at, end, child);
    if (read.ec == std::errc()) children.push_back(child);
    at = read.ptr == at ? at + 1 : read.ptr;
  }
  return children;
}

FileDescriptor OpenChildren() {
  const std::string path = "/proc/self/task/" + std::to_string(getpid()) + "/children";
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// The lines of a process's environment, each after a NUL.
std::string EnvironmentOf(pid_t pid) {
  std::ifstream file(std::string("/proc/") + std::to_string(pid) + "/environ", std::ios::binary);
  return std::string(1, '\0') + std::string(std::istreambuf_iterator<char>(file), {});
}

bool Holds(const std::string& environment, const std::string& line) {
  return !line.empty() && environment.find('\0' + line + '\0') != std::string::npos;
}

bool IsDead(pid_t child) {
  siginfo_t seen = {};
  return waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOHANG | WNOWAIT) == 0 && seen.si_pid == child;
}

// False when the child still exists.
bool Reap(pid_t child, int patience_ms) {
  const FileDescriptor exited(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  pollfd watched = {exited.get(), POLLIN, 0};
  while (exited.valid() && poll(&watched, 1, patience_ms) < 0 && errno == EINTR) {
  }
  return waitpid(child, nullptr, WNOHANG) == child;
}

}  // namespace

Orphans& Orphans::OfThisProcess() {
  static Orphans only;
  return only;
}

void Orphans::Begin() {
  if (begun_++ != 0) return;
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper_before_);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  children_ = OpenChildren();
  const std::vector<pid_t> before = ReadChildren(children_);
  strangers_ = {before.begin(), before.end()};
}

void Orphans::End() {
  if (--begun_ != 0) return;
  prctl(PR_SET_CHILD_SUBREAPER, subreaper_before_);
  children_ = FileDescriptor();
}

void Orphans::BeginAnew() {
  begun_ = 0;
  children_ = FileDescriptor();
  strangers_.clear();
  running_.clear();
}

void Orphans::Add(pid_t pid, const std::string& origin, bool own_group) { running_[pid] = {origin, own_group}; }

bool Orphans::IsOf(const Process& ended, pid_t orphan, bool all_known) const {
  const std::string environment = EnvironmentOf(orphan);
  if (Holds(environment, ended.origin)) return true;
  const auto another = [&](const auto& one) { return Holds(environment, one.second.origin); };
  if (std::any_of(running_.begin(), running_.end(), another)) return false;
  const bool ours = environment.find('\0' + std::string(kAnyOrigin)) != std::string::npos;
  if (!running_.empty() || !all_known) return false;
  // The first process of a container adopts all orphans, so its children need not come from a program of cuaudit.
  return ours || (strangers_.empty() && getpid() != 1);
}

void Orphans::ReapEnded() {
  for (const pid_t child : ReadChildren(children_)) {
    if (!running_.contains(child) && !strangers_.contains(child) && IsDead(child)) Reap(child, 0);
  }
}

LeftBehind Orphans::Remove(pid_t pid, bool leave, const std::function<std::vector<pid_t>()>& spared) {
  const Process ended = running_[pid];
  running_.erase(pid);
  const pid_t group = ended.own_group ? pid : getpgrp();
  LeftBehind left;
  std::set<pid_t> stay;
  bool more = true;
  for (int round = 0; round < kMostRounds && more; ++round) {
    more = false;
    std::vector<pid_t> children = ReadChildren(children_);
    std::erase_if(children, [&](pid_t child) { return running_.contains(child) || strangers_.contains(child) || stay.contains(child); });
    if (children.empty()) break;
    const std::vector<pid_t> expected = spared ? spared() : std::vector<pid_t>();
    for (const pid_t child : children) {
      const auto is_this = [&](pid_t one) { return one == child; };
      if (std::any_of(expected.begin(), expected.end(), is_this)) continue;
      const pid_t its_group = getpgid(child);
      if (its_group != group && running_.contains(its_group)) continue;
      if (IsDead(child)) {
        left.orphans += its_group == group ? 0 : 1;
        more = Reap(child, 0) || more;
        continue;
      }
      if (its_group != group) {
        if (!IsOf(ended, child, expected.empty())) continue;
        ++left.alive;
        ++left.orphans;
      }
      stay.insert(child);
      if (leave) continue;
      const bool gone = kill(child, SIGKILL) == 0 && Reap(child, kPatienceMs);
      left.survived += gone || its_group == group ? 0 : 1;
      more = gone || more;
    }
  }
  return left;
}

}  // namespace cuaudit::harness
