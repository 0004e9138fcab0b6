// SPDX-License-Identifier: MIT
// returns.h: when the functions of a run return, as far as its calls show it.
//
//   Owns      what it has found out: many changes at one place ask for the same. Borrows the run.
//   Threads   one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "faults/journal/record.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

class Returns {
 public:
  explicit Returns(const Evidence& run) : run_(run) {}

  // The first call of the thread, from that one on, from outside of the function which the frame at `level` of the stack of `call` called;
  // kNoCall: none.
  std::size_t Outside(const faults::Record& call, std::size_t level, std::size_t from);
  // What SharedLevel (evidence.h) answers.
  std::size_t SharedBy(std::size_t first, std::size_t last);
  // The first call of the run after the last one of a thread that has ended; kNoCall: it may still run, or made the process exit.
  std::size_t AfterThread(const faults::Record& call);

 private:
  using Function = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // process, thread, frame that called it

  const Evidence& run_;
  std::map<Function, std::map<std::size_t, std::size_t>> outside_;  // from a call on: the first one from outside
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> after_;
};

}  // namespace cuaudit::harness
