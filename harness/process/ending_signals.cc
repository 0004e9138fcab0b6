// SPDX-License-Identifier: MIT
#include "harness/process/ending_signals.h"

#include <initializer_list>

namespace cuaudit::harness {

sigset_t EndingSignals() {
  sigset_t ending;
  sigemptyset(&ending);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now = {};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ending, number);
  }
  return ending;
}

}  // namespace cuaudit::harness
