// SPDX-License-Identifier: MIT
// watch.h: finds what a program acquires in a span of its run and has not given back at the end of the span. The program need not be
// written as a lifecycle.
//
//     cuaudit::Watch watch;
//     watch.Begin();                             // a suite
//     watch.Begin();                             // a test of the suite
//     const Audit test = watch.End("a test");    // what was made in the test and is still held
//     const Audit suite = watch.End("a suite");  // what was made in the suite outside of the test, wherever it was released
//
// A Watch owns a journal in memory and a gate. A process may have one Watch at a time. The constructor opens the driver behind the
// drop-in. The calls of all threads are seen, but one thread must begin and end the spans. A call that is in progress when a span ends
// belongs to the span in which the call returns, and delays the reuse of journal space until then. A driver call is one record of 128
// bytes, and a kernel launch one more for every nine addresses. Without the drop-in library in the process nothing is watched: why_not()
// gives the reason and End answers NotExercised. A span with more records than `most_records` is an Error; the next span has the whole
// journal again.
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

  const char* why_not() const noexcept;  // reason why nothing is watched; null: all calls are seen
  // Begins a span, nested in the current one.
  void Begin();
  // Ends the span that was begun last. The audit has what was acquired in the span, outside of nested spans, and is still held, and the
  // violations made in the span. A leftover object is reported once. The cost grows with the records of the span and with the objects
  // held by the enclosing spans.
  Audit End(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cuaudit
