// SPDX-License-Identifier: MIT
#include "suites/contract/partner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "faults/driver/result.h"

extern char** environ;

namespace cuaudit::contract {
namespace {

constexpr int kPatienceMs = 20000;  // a first cuInit can take seconds

struct Told {
  std::string driver = "sim";
  std::string library = "libcuda.so.1";
};

Told& DriverOfPartners() {
  static Told told;
  return told;
}

// False at the end of the stream, or when nothing comes.
bool ReadAll(int fd, char* to, std::size_t count, bool* hangs) {
  while (count != 0) {
    pollfd end{fd, POLLIN, 0};
    if (poll(&end, 1, kPatienceMs) == 0) {
      *hangs = true;
      return false;
    }
    const ssize_t got = read(fd, to, count);
    if (got <= 0) return false;
    to += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

void WriteAll(int fd, const char* from, std::size_t count) {
  while (count != 0) {
    const ssize_t sent = send(fd, from, count, MSG_NOSIGNAL);
    if (sent <= 0) return;
    from += sent;
    count -= static_cast<std::size_t>(sent);
  }
}

}  // namespace

void SetPartnerDriver(const std::string& driver, const std::string& library) { DriverOfPartners() = {driver, library}; }

Partner::Partner(Asker& asker, const char* role, int fd) : asker_(asker) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  // Away from the numbers that the partner finds them at.
  const int theirs = fcntl(ends[1], F_DUPFD_CLOEXEC, 16);
  const int gift = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 16);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, kPartnerSocket);
  if (gift >= 0) posix_spawn_file_actions_adddup2(&actions, gift, kInherited);
  std::string words[] = {"cuaudit_contract", "--driver", DriverOfPartners().driver, "--library", DriverOfPartners().library,
                         "--partner",        role};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                       words[4].data(), words[5].data(), words[6].data(), nullptr};
  if (posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments, environ) != 0) process_ = 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  close(theirs);
  if (gift >= 0) close(gift);
  socket_ = ends[0];
}

Partner::~Partner() {
  if (socket_ >= 0) close(socket_);
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
}

void Partner::Give(const void* bytes, std::size_t count) const { WriteAll(socket_, static_cast<const char*>(bytes), count); }

void Partner::Take(void* bytes, std::size_t count) const {
  bool hangs = false;
  if (!ReadAll(socket_, static_cast<char*>(bytes), count, &hangs)) asker_.Text(hangs ? "partner:hang" : "partner:silent");
}

void Partner::Finish() {
  std::string answer;
  bool hangs = false;
  for (char letter = 0; ReadAll(socket_, &letter, 1, &hangs) && letter != '\n';) answer += letter;
  if (process_ > 0) {
    if (hangs) kill(process_, SIGKILL);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    if (hangs) {
      answer = "hang";
    } else if (WIFSIGNALED(status)) {
      answer = "crash";
    }
  }
  asker_.Text(answer.c_str());
}

void PartnerGive(const void* bytes, std::size_t count) { WriteAll(kPartnerSocket, static_cast<const char*>(bytes), count); }

bool PartnerTake(void* bytes, std::size_t count) {
  bool hangs = false;
  return ReadAll(kPartnerSocket, static_cast<char*>(bytes), count, &hangs);
}

std::vector<Question> FindPartnerQuestion(const std::string& role) {
  Questions ask(role);
  ipc_questions::ListPartners(ask);
  return ask.Take();
}

void PartnerAnswer(const std::string& answer) {
  const std::string line = answer + "\n";
  PartnerGive(line.data(), line.size());
}

namespace {

constexpr unsigned kPatience = 20;  // seconds

void Tell(int pipe, const std::string& word) {
  const std::string text = word + " ";
  if (write(pipe, text.data(), text.size()) < 0) _exit(1);
}

}  // namespace

CUresult Teller::operator()(CUresult result) {
  const std::string_view name = driver::ShortResultName(result);
  Tell(pipe_, name.empty() ? "code:" + std::to_string(static_cast<int>(result)) : std::string(name));
  return result;
}

void Teller::Value(long long value) { Tell(pipe_, std::to_string(value)); }

void InChild(Asker& a, void (*say)(Teller&), bool exits) {
  int ends[2];
  if (pipe(ends) != 0) return a.Text("no pipe");
  const pid_t child = fork();
  if (child < 0) return a.Text("no process");
  if (child == 0) {
    close(ends[0]);
    signal(SIGALRM, SIG_DFL);
    alarm(kPatience);
    static Teller teller(a.d, ends[1]);
    say(teller);
    if (exits) std::exit(0);
    _exit(0);
  }
  close(ends[1]);
  std::string heard;
  char buffer[256];
  for (ssize_t got = read(ends[0], buffer, sizeof(buffer)); got > 0; got = read(ends[0], buffer, sizeof(buffer))) {
    heard.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!heard.empty() && heard.back() == ' ') heard.pop_back();
  if (!heard.empty()) a.Text(heard.c_str());
  if (WIFSIGNALED(status)) a.Text(WTERMSIG(status) == SIGALRM ? "hang" : "crash");
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) a.Text("exit");
}

}  // namespace cuaudit::contract
