// SPDX-License-Identifier: MIT
// stage.h: what streams do while a question is asked: one is busy, or one is under capture.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "suites/contract/question.h"

namespace cuaudit::contract {

// Keeps a stream busy for a while, for questions about which calls wait.
//
// BeSlow takes long enough for any call that does not wait to return first. It is bounded, since a call that waits must come back too. A
// driver that runs it in the thread that asks, as the simulated one does, can make no call beside it, so that it takes no time there.

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

// What streams do while a question is asked: one is busy, or one is under capture.

// Two streams and two events of a current context. A host function keeps one stream busy until LetGo. It spins for two seconds at most. It
// does not spin when the asking thread runs it, because then no thread could end the wait. The destructor lets the stream go and waits for
// it. A preparation that fails shows in the answer.

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

struct Stage : Ready {
  explicit Stage(const Asker& asker, unsigned flags = CU_STREAM_NON_BLOCKING) : Ready(asker) {
    static Hold only;
    hold = &only;
    hold->open.store(0);
    hold->passed.store(0);
    hold->asker = std::this_thread::get_id();
    Prepare(d.StreamCreate(&s, flags));
    Prepare(d.StreamCreate(&t, flags));
    Prepare(d.EventCreate(&e, 0));
    Prepare(d.EventCreate(&f, 0));
  }
  ~Stage() {
    hold->open.store(1);
    (void)d.CtxSynchronize(nullptr);
    if (f != nullptr) (void)d.EventDestroy(f);
    if (e != nullptr) (void)d.EventDestroy(e);
    if (t != nullptr) (void)d.StreamDestroy(t);
    if (s != nullptr) (void)d.StreamDestroy(s);
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  // The stream is busy from here until LetGo.
  void KeepBusy(CUstream stream) { Prepare(d.LaunchHostFunc(stream, PassHold, hold)); }
  void LetGo() { hold->open.store(1); }
  // Whether the busy stream had finished by now.
  void Passed() { Value(hold->passed.load()); }
  // Lets the busy stream go and waits for the event.
  void LetGoAndWait(CUevent event) {
    LetGo();
    (*this)(d.EventSynchronize(event));
    Passed();
  }

  CUstream s = nullptr;
  CUstream t = nullptr;
  CUevent e = nullptr;
  CUevent f = nullptr;
  Hold* hold = nullptr;
};

// Its streams wait for the legacy stream and it for them.
struct BlockingStage : Stage {
  explicit BlockingStage(const Asker& asker) : Stage(asker, CU_STREAM_DEFAULT) {}
};

// A stream under capture and the graph that the capture becomes.
//
// The constructor creates the stream and begins the capture. The question may end the capture; if it does not, the destructor does, and
// it destroys the graph. A preparation that fails shows in the answer.

struct Capturing {
  explicit Capturing(Asker& asker, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) : a(asker), s(a.StreamCreate()) {
    a.Prepare(a.d.StreamBeginCapture(s, mode));
  }
  ~Capturing() {
    if (g == nullptr) (void)a.d.StreamEndCapture(s, &g);
    if (g != nullptr) (void)a.d.GraphDestroy(g);
  }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;
  // The answer to whether the stream is captured.
  void ShowStatus() const {
    CUstreamCaptureStatus status{};
    a(a.d.StreamIsCapturing(s, &status), status);
  }
  // The number of nodes; 0 when there is no graph.
  void ShowNodes() const {
    std::size_t count = 0;
    if (g != nullptr) a.Prepare(a.d.GraphGetNodes(g, nullptr, &count));
    a.Value(static_cast<long long>(count));
  }

  Asker& a;
  const CUstream s;
  CUgraph g = nullptr;
};

}  // namespace cuaudit::contract
