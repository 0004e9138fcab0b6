// SPDX-License-Identifier: MIT
// call_list.h: driver calls as a list that can be made again: each argument is a number, a variable that an earlier call wrote, or a
// stand-in.
//
//   Owns      plain values.
//   Threads   one thread.
//   Units     bytes.
//
// The list is a path with branches. Each stage but the last ends in a call that is made to fail: when it fails, the next stage follows, and
// when it succeeds, `rest` follows and the list is over. A list without faults has one stage.
//
//     stage 0:  cuInit, cuDevicePrimaryCtxRetain, ...   then cuStreamCreate, which fails        rest: ..., cuStreamDestroy
//     stage 1:  what the program calls after that failure
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/driver/kinds.h"
#include "faults/plan/fault.h"

namespace cuaudit::harness {

inline constexpr int kNoVariable = -1;

struct CallValue {
  enum class Is : std::uint8_t {
    Number,     // `number`
    Variable,   // the value of `variable`, plus `number` bytes
    Output,     // the address of `variable`, which the call writes
    Exchange,   // the address of `variable`, which holds `number` and which the call writes
    Pointee,    // the address of what a setting is given: of `variable`, or of what `number` tells (parameters.h)
    Structure,  // a structure of the parameter's type with values of cuaudit's own (structures.def); `variable`: the object that it names
    Text,       // a name
    Image,      // a module with one empty kernel
    Function,   // a function that does nothing
    Room,       // memory that nobody reads afterwards
    Nothing,    // a null pointer
  };
  Is is = Is::Number;
  std::uint64_t number = 0;
  int variable = kNoVariable;
  driver::Kind kind = driver::Kind::None;  // Structure: of the object in `variable`

  friend bool operator==(const CallValue&, const CallValue&) = default;
};

struct CallVariable {
  std::string type;                        // as a C declaration has it: "CUstream", "void *"
  driver::Family family{};                 // of the handle
  std::uint64_t host_bytes = 0;            // not 0: the variable is memory of the program itself, of this size
  driver::Kind kind = driver::Kind::None;  // of the object that the first call makes; None: it makes none
};

struct Step {
  driver::CallId call{};
  std::vector<CallValue> values;
  std::string place;      // "open_pair, blame.c:42" or "libnorth.so+0x1234"; empty: unknown
  bool succeeded = true;  // in the recorded run
  // The calling instruction, and the whole call stack, numbered in the order in which they were met: some rules compare places.
  std::uint32_t caller = 0;
  std::uint32_t stack = 0;
  std::uint32_t cycle = 0;
  std::uint32_t thread = 0;  // of the recorded process, counted from 0
  bool of_defect = false;    // acquires what the defect loses, at the place that the report names
  bool goes_on = false;      // follows the return of the function that does not put back what it changed
};

struct FailingStep {
  Step step;
  faults::Fault fault;  // its occurrence is that of the recorded run; FaultsOf counts it anew
};

struct Stage {
  std::vector<Step> steps;
  std::optional<FailingStep> failing;  // none: the last stage
  std::vector<Step> rest;              // what follows when the failing call succeeds
};

struct CallList {
  std::vector<CallVariable> variables;
  std::vector<Stage> stages;

  bool has_faults() const { return stages.size() > 1; }
};

// Number of calls, the failing ones included.
std::size_t CountCalls(const CallList& list);

// The faults in their order, each counted in this list: "cuStreamCreate#2=OUT_OF_MEMORY,refuse".
std::vector<std::string> FaultsOf(const CallList& list);

// Marks the calls of a list that are kept, in one order: of each stage first its steps, then its rest. Failing calls are always kept.
using Kept = std::vector<bool>;

// The list, of which some calls are left out, and with them what cannot be made any more. Steps of it are pointed at, so it stays where it
// is.
class KeptCalls {
 public:
  explicit KeptCalls(CallList list);
  KeptCalls(const KeptCalls&) = delete;
  KeptCalls& operator=(const KeptCalls&) = delete;

  const CallList& list() const noexcept { return list_; }
  const std::vector<const Step*>& steps() const noexcept { return steps_; }  // in the order of Kept

  CallList Build(const Kept& kept) const;

  // Leaves out what uses a variable that nobody writes any more. Answers false when a failing call does.
  bool Close(Kept* kept) const;

  // The threads (Step::thread) or the marked cycles (Step::cycle; 0: outside of cycles) that make calls.
  std::set<std::uint32_t> Numbers(std::uint32_t Step::*of) const;

 private:
  const CallList list_;
  std::vector<const Step*> steps_;
  std::set<int> written_;  // variables that some call writes
};

}  // namespace cuaudit::harness
