// SPDX-License-Identifier: MIT
#include "suites/contract/another_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "faults/driver/result.h"

namespace cuaudit::contract {
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
