// SPDX-License-Identifier: MIT
// stop_signals.h: while one exists, SIGINT, SIGTERM and SIGHUP do not end the process at once, so that a sweep can write what it found.
//
//   Owns      the handlers of the signals that the process does not ignore; the destructor puts back the ones from before.
//   Threads   one exists at a time; `Seen` from any thread.
//   Errors    none. A second signal, or five seconds after the first, has the effect that it has without this, because a step may hang.
#pragma once

namespace cuaudit::harness {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came while one existed; 0: none.
  static int Seen() noexcept;
};

}  // namespace cuaudit::harness
