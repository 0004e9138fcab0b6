// SPDX-License-Identifier: MIT
// setting_calls.h: what a kit takes from recorded runs to show that something is left changed: the values that calls give to settings
// (faults/driver/settings.def), and where the function has returned that owes the former state.
//
//   Threads   one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "faults/driver/settings.h"
#include "faults/journal/record.h"
#include "harness/kit/call_list.h"
#include "harness/kit/defect_shown.h"
#include "harness/sweep/run/observation.h"
#include "harness/verdict/context/put_back.h"
#include "harness/verdict/context/restored_settings.h"

namespace cuaudit::harness {

// Writes into the steps of one run, call by call, what they give a setting. Who puts back what a call of the run answered does so with the
// variable that holds it, so that the question stays in the reducer.
class SettingValues {
 public:
  void Write(const faults::Record& record, Step* step);

 private:
  struct Told {
    std::uint64_t value = 0;
    CallValue holds;  // what a call is given that is to be given the value
  };
  using Name = std::tuple<const driver::SettingRow*, std::uint64_t, std::uint64_t>;  // with object and key
  std::map<Name, Told> told_;
};

// True for a rule about what a function changes and puts back.
bool IsOfPutBack(Rule rule);

// Tells in each run of a trial where a function has returned that changed a setting, the current context or the capture of a stream, which
// the trial does not put back.
//   Owns      what the fault-free run does. Borrows the runs.
class FunctionReturns {
 public:
  FunctionReturns(std::span<const Observation> runs, std::span<const Wrong> wanted);
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // The ticket of the first call after that return, where the function was running at the ticket `failed`; kNever: it runs to the end, or
  // no setting is looked for.
  std::uint64_t In(const Observation& run, std::uint64_t failed) const;

 private:
  std::optional<RestoredSettings> settings_;
  std::optional<PutBack> others_;
  std::vector<std::uint64_t> places_;  // of the changes that the trial leaves
};

}  // namespace cuaudit::harness
