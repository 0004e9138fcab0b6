// SPDX-License-Identifier: MIT
// replay_calls.h: makes the calls of a CallList through a driver, any entry point with arguments as words.
//
//   Owns      the memory that stands for the program's own.
//   Threads   one thread at a time. Calls that were made by several threads are made by this one.
//   Errors    none: results that differ from the recorded ones are counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "faults/driver/driver_ref.h"
#include "harness/kit/call_list.h"

namespace cuaudit::harness {

// Calls any entry point of a driver with arguments as words.
//
//   Threads   safe.
//   Errors    the driver's result.

// `words` has a word per parameter: the value, or for a structure that is passed by value its address (0: all zero).
CUresult MakeCall(driver::DriverRef driver, driver::CallId call, const std::uint64_t* words) noexcept;

class CallReplay {
 public:
  // Borrows the list. `one_place`: what follows when a call succeeds comes from the same function as what follows when it fails. Otherwise
  // it comes from another one, as in a reducer.
  explicit CallReplay(const CallList& list, bool one_place = false);
  CallReplay(const CallReplay&) = delete;
  CallReplay& operator=(const CallReplay&) = delete;
  ~CallReplay();

  // Makes the calls of the path from the beginning. Answers the result of the last failing call, or success when the path ended in a `rest`
  // or has no failing call.
  CUresult Run(driver::DriverRef driver);

  // Calls that failed in any Run although they had succeeded when they were recorded.
  const std::vector<const Step*>& unlike() const noexcept { return unlike_; }
  bool roomy() const noexcept { return room_ != nullptr; }  // false: the system refuses the memory, and Run makes no calls

 private:
  CUresult Make(driver::DriverRef driver, const Step& step);
  CUresult MakeElsewhere(driver::DriverRef driver, const Step& step);
  void FillWords(const Step& step, std::uint64_t* words);

  const CallList& list_;
  const bool one_place_;
  std::vector<std::uint64_t> values_;  // of the variables
  std::vector<std::uint64_t> homes_;   // of variables that are host memory: where it lies
  char* room_ = nullptr;
  std::size_t room_bytes_ = 0;
  std::vector<const Step*> unlike_;
};

}  // namespace cuaudit::harness
