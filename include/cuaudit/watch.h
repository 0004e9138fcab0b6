// SPDX-License-Identifier: MIT
// watch.h: what a program that was not written as a lifecycle acquires in a span of its run and has not given back at its end.
//
//     watch.Begin();                            // a suite
//     watch.Begin();                            // a test of it
//     const Audit test = watch.End("a test");   // what was made in it
//     const Audit suite = watch.End("a suite");  // what was made in it outside of the test, wherever it was released
//
//   Owns      a journal in memory and a gate, for its lifetime; one at a time in a process.
//   Threads   calls of all threads are seen; the spans belong to the thread that begins and ends them. A call that is under way when a
//             span ends belongs to the span in which it returns, and holds up the reuse of room until then.
//   Units     records of 128 bytes; a call is one, a kernel launch one more for every nine addresses.
//   Errors    why_not() says why nothing is watched: no drop-in library in the process. Then End answers NotExercised. A span with more
//             records than there is room for is an Error, and the next one begins with all the room again.
//   Faults    makes no driver calls; the driver behind the drop-in is opened by the constructor.
//   Source    ours.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "cuaudit/lifecycle.h"

namespace cuaudit {

class CUAUDIT_PUBLIC Watch {
 public:
  static constexpr std::size_t kMostRecords = std::size_t{1} << 22;

  explicit Watch(std::size_t most_records = kMostRecords);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const char* why_not() const noexcept;  // null: all calls are seen
  // Begins a span inside of the one that is under way.
  void Begin();
  // Ends the span that was begun last: what was acquired in it, outside of spans inside of it, and is still held, and what was done wrong
  // in it. Of what is left nothing is told again. Costs what happened in the span and what is held by those around it.
  Audit End(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cuaudit
