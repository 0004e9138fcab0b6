// SPDX-License-Identifier: MIT
// reduced_defect.h: the calls of one defect, reduced: from a result, whose trial is run once more; from a trial that was kept; from a
// recording.
//
//   Errors    Status: no such defect, the program does not show it any more, or calls alone do not show it.
#pragma once

#include "harness/kit/defect_shown.h"
#include "harness/kit/reduce_calls.h"
#include "harness/options/options.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

// The defect, the options under which it was seen, and the fewest calls that show it.
struct Reduced {
  WantedDefect defect;
  Options recorded;
  Reduction reduction;
};

// The first operand of `options` is the fingerprint, the second one what has the defect; without it the program is swept.
Result<Reduced> ReduceDefect(const Options& options);

}  // namespace cuaudit::harness
