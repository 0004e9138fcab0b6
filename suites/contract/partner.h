// SPDX-License-Identifier: MIT
// partner.h: other processes that answer: this program again, and forked children.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "suites/contract/question.h"

namespace cuaudit::contract {

// A second process for questions that need one. It asks the same kind of driver a short question of its own.
// A Partner starts this program again in the role of a question of memory/ipc_questions.cc; the two talk over a socket pair. A Partner
// owns the process and the socket and ends both. A partner that dies or hangs answers "crash" or "hang".

// Which driver partners ask: what this process was told.
void SetPartnerDriver(const std::string& driver, const std::string& library);

class Partner {
 public:
  // fd -1: none to inherit.
  Partner(Asker& asker, const char* role, int fd = -1);
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;
  void Give(const void* bytes, std::size_t count) const;
  void Take(void* bytes, std::size_t count) const;
  // A word each way when there is nothing else to say.
  void Nod() const { Give("!", 1); }
  void AwaitNod() const {
    char word = 0;
    Take(&word, 1);
  }
  // Appends what the partner answered.
  void Finish();

 private:
  Asker& asker_;
  pid_t process_ = 0;
  int socket_ = -1;
};

// In the partner's process: the other side of the socket, and the file descriptor it inherited.
void PartnerGive(const void* bytes, std::size_t count);
bool PartnerTake(void* bytes, std::size_t count);
inline constexpr int kPartnerSocket = 3;
inline constexpr int kInherited = 4;

namespace ipc_questions {
void ListPartners(Questions& ask);  // what the other process does
}
// None: there is no such role.
std::vector<Question> FindPartnerQuestion(const std::string& role);
void PartnerAnswer(const std::string& answer);

// Collects the answer of a forked child, word by word through a pipe. The answer ends in "crash" when a signal ended the child, and in
// "hang" when that signal was its alarm.

// Sends each code at once, so that the words before a crash arrive.
class Teller {
 public:
  Teller(Driver driver, int pipe) : d(driver), pipe_(pipe) {}
  Driver d;
  CUresult operator()(CUresult result);
  void Value(long long value);

 private:
  int pipe_;
};

// The child runs `say` and leaves by _exit, or by exit when `exits`; its words are appended to the answer.
void InChild(Asker& a, void (*say)(Teller&), bool exits = false);

}  // namespace cuaudit::contract
