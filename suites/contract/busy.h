// SPDX-License-Identifier: MIT
// busy.h: keeps a stream busy for a while, for questions about which calls wait.
//
// BeSlow takes long enough for any call that does not wait to return first. It is bounded, since a call that waits must come back too. A
// driver that runs it in the thread that asks, as the simulated one does, can make no call beside it, so that it takes no time there.
#pragma once

#include <atomic>
#include <thread>

namespace cuaudit::contract {

struct Busy {
  std::thread::id asker;
  std::atomic<int> done{0};
  // What to hand to BeSlow, called by the thread that asks.
  Busy* Begin() {
    asker = std::this_thread::get_id();
    done.store(0);
    return this;
  }
};

inline void BeSlow(void* argument) {
  Busy* const busy = static_cast<Busy*>(argument);
  volatile int turns = busy->asker == std::this_thread::get_id() ? 400000000 : 0;
  while (turns < 400000000) turns = turns + 1;
  busy->done.store(1);
}

}  // namespace cuaudit::contract
