// SPDX-License-Identifier: MIT
// another_process.h: collects the answer of a forked child, word by word through a pipe.
//
// The answer ends in "crash" when a signal ended the child, and in "hang" when that signal was its alarm.
#pragma once

#include <cstdlib>

#include "suites/contract/question.h"

namespace cuaudit::contract {

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
