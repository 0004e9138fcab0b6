// SPDX-License-Identifier: MIT
// stage.h: two streams and two events of a current context. A host function keeps one stream busy until LetGo.
//
// The host function spins for two seconds at most. It does not spin when the asking thread runs it, because then no thread could end the
// wait. The destructor lets the stream go and waits for it. A preparation that fails shows in the answer.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "suites/contract/question.h"

namespace cuaudit::contract {

struct Hold {
  std::atomic<int> open{0};
  std::atomic<int> passed{0};
  std::thread::id asker;
};

inline void PassHold(void* argument) {
  Hold* const hold = static_cast<Hold*>(argument);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (hold->asker != std::this_thread::get_id() && hold->open.load() == 0 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
  hold->passed.store(1);
}

class Stage {
 public:
  explicit Stage(Asker& asker, unsigned flags = CU_STREAM_NON_BLOCKING) : a(asker), ready(asker) {
    static Hold only;
    hold = &only;
    hold->open.store(0);
    hold->passed.store(0);
    hold->asker = std::this_thread::get_id();
    a.Prepare(a.d.StreamCreate(&s, flags));
    a.Prepare(a.d.StreamCreate(&t, flags));
    a.Prepare(a.d.EventCreate(&e, 0));
    a.Prepare(a.d.EventCreate(&f, 0));
  }
  ~Stage() {
    hold->open.store(1);
    (void)a.d.CtxSynchronize(nullptr);
    if (f != nullptr) (void)a.d.EventDestroy(f);
    if (e != nullptr) (void)a.d.EventDestroy(e);
    if (t != nullptr) (void)a.d.StreamDestroy(t);
    if (s != nullptr) (void)a.d.StreamDestroy(s);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  // The stream is busy from here until LetGo.
  void KeepBusy(CUstream stream) { a.Prepare(a.d.LaunchHostFunc(stream, PassHold, hold)); }
  void LetGo() { hold->open.store(1); }
  // Whether the busy stream had finished by now.
  void Passed() { a.Value(hold->passed.load()); }

  Asker& a;
  const Ready ready;
  CUstream s = nullptr;
  CUstream t = nullptr;
  CUevent e = nullptr;
  CUevent f = nullptr;
  Hold* hold = nullptr;
};

}  // namespace cuaudit::contract
