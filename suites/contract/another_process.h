// SPDX-License-Identifier: MIT
// another_process.h: what a forked child of the question hears, word by word through a pipe.
//
//   Owns      the child until it ended; a child that hangs is ended by its alarm.
//   Threads   one question at a time.
//   Errors    "crash" behind the words of a child that a signal ended, "hang" when it was its alarm.
//   Faults    makes the driver calls of its question.
//   Source    ours.
#pragma once

#include <cstdlib>

#include "suites/contract/question.h"

namespace cuaudit::contract {

// Tells each code at once: what a crash interrupts is heard up to there.
class Teller {
 public:
  Teller(driver::DriverRef driver, int pipe) : d(driver), pipe_(pipe) {}
  driver::DriverRef d;
  CUresult operator()(CUresult result);
  void Value(long long value);

 private:
  int pipe_;
};

// The child runs `say` and leaves by _exit, or by exit when `exits`; its words are appended to the answer.
void InChild(Asker& a, void (*say)(Teller&), bool exits = false);

}  // namespace cuaudit::contract
