// SPDX-License-Identifier: MIT
// watch.h: what a program that was not written as a lifecycle acquires between two moments and has not given back by then.
//
//   Owns      a journal in memory and a gate, for its lifetime; one at a time in a process.
//   Threads   calls of all threads are seen; the moments belong to the thread that asks.
//   Units     moments are tickets of the journal's clock.
//   Errors    why_not() says why nothing is watched: no drop-in library in the process. Then Since answers NotExercised.
//   Faults    makes no driver calls; the driver behind the drop-in is opened by the constructor.
//   Source    ours.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuaudit/lifecycle.h"

namespace cuaudit {

class CUAUDIT_PUBLIC Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const char* why_not() const noexcept;  // null: all calls are seen
  std::uint64_t Now() const noexcept;
  using Span = std::pair<std::uint64_t, std::uint64_t>;  // [from, until)
  // Objects acquired since `from` and still held, and what was done wrong since then; without what happened in the spans `but`.
  Audit Since(std::uint64_t from, const std::string& name, const std::vector<Span>& but = {}) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cuaudit
