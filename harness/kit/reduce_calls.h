// SPDX-License-Identifier: MIT
// reduce_calls.h: the fewest calls that still show a defect.
//
//   Threads   one thread.
//   Errors    Status: the list does not show what is looked for, or cannot be judged.
//   Source    A. Zeller, R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input (2002): ddmin.
//
// A shorter list is taken when it shows the same: equal rules, kinds and counts, under the same faults. It must be as tidy as the longer
// one: without a fault it leaves no more, nothing else is wrong, and no call fails that succeeded when it was recorded. A call that uses
// what a call that was left out makes is left out, too.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/kit/call_list.h"
#include "harness/kit/defect_shown.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

struct Reduction {
  CallList list;
  std::size_t before = 0;  // calls
  std::size_t looks = 0;   // lists that were tried
  // Calls that fail in the reducer although they did not in the program, because the journal does not hold what they were given.
  std::vector<std::string> unlike;
};

// How far a reduction has come. Each pass goes through what is left until one of them leaves nothing out.
struct ReducedSoFar {
  std::size_t pass = 0;     // from 1; 0: the cycle that shows the defect is looked for
  std::size_t tried = 0;    // shorter lists of this pass
  std::size_t planned = 0;  // of this pass, as far as known: fewer, once calls are left out
  std::size_t left = 0;     // calls
  std::size_t before = 0;   // calls
};
using ToldReduction = std::function<void(const ReducedSoFar& now)>;

// `wanted` is what the defect is made of (Together). `told` hears of each list before it is tried.
Result<Reduction> ReduceCalls(CallList list, const std::vector<Wrong>& wanted, DefectJudge* judge, const ToldReduction& told = {});

// The same for what grows with marked cycles. One of them leaves it, not always the first: the first one that shows it is reduced, with the
// calls outside of cycles; where none does alone, the first one that does after the first cycle, which may have warmed up.
Result<Reduction> ReduceToOneCycle(const CallList& list, const std::vector<Wrong>& wanted, DefectJudge* judge,
                                   const ToldReduction& told = {});

}  // namespace cuaudit::harness
