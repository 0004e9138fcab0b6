// SPDX-License-Identifier: MIT
// side_by_side.h: carries out pieces of work that do not depend on each other, several at a time, each in a process of its own.
//
//   Owns      the processes. When a signal ends the command they are told, and waited for.
//   Threads   none: what is carried out may start audited programs, beside which no thread of the tool may run.
//   Errors    Status: a process cannot be started, or one ended before it had an answer; or what `take` answers.
//
//     SideBySide how{jobs, {}, [&](std::size_t i) { return Merged(i); }, [&](std::size_t i, std::string text) { return Write(i, text); }};
//     const Status done = CarryOutSideBySide(cases.size(), how, &signal);
//
// The order in which answers are taken is that of the numbers, however long each takes, so the result does not depend on how many are
// carried out at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "harness/cli/progress.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

struct SideBySide {
  std::size_t at_a_time = 1;
  // Memory that a piece takes, about. A piece waits until it and those under way take at most `memory`; one alone may take more.
  std::function<std::uint64_t(std::size_t number)> bytes = {};
  std::uint64_t memory = std::uint64_t{1} << 30U;
  // What the piece is about, for the line that says that its process ended.
  std::function<std::string(std::size_t number)> name = {};
  // Runs in a process of its own when several may be carried out at a time.
  std::function<std::string(std::size_t number)> carry_out = {};
  // Runs in this process, in the order of the numbers, with the answer of `carry_out`. Any failure ends all.
  std::function<Status(std::size_t number, std::string answer)> take = {};
  // Shows how many pieces are done. Null: nothing is shown.
  Progress* progress = nullptr;
};

// `signal` gets the signal that ended it; 0: none did.
Status CarryOutSideBySide(std::size_t count, const SideBySide& how, int* signal);

// Processor cores that this process may use.
std::size_t UsableCores();

}  // namespace cuaudit::harness
