// SPDX-License-Identifier: MIT
// defect_steps.h: how a defect came about, step by step, and the same in one sentence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run.h"
#include "reports/source_root.h"

namespace cuaudit::report {

struct Step {
  std::string says;  // "acquired by cuStreamCreate"
  std::vector<Frame> stack;
  bool whole = true;         // false: `stack` is one function, and not the call stack of an event
  bool on_way_back = false;  // a call that the program makes after the failing one
};

// In the order in which they happen: the object is acquired, calls fail, the program makes its way back, a function returns without the
// release, the object is lost. What a rule does not have is left out. Of a long way back its first fifty calls are told.
std::vector<Step> StepsOf(const Run& run, const Defect& defect);

// Beside the path: where the fault-free run releases the object. Absent when it does not.
std::optional<Step> ReleaseOf(const Defect& defect);

// The place that a person opens first: where the object was acquired when it was lost, otherwise where it went wrong; when that is not
// below the root, the next place of the defect that is.
std::optional<SourcePlace> PlaceOf(const SourceRoot& root, const Run& run, const Defect& defect);

// The innermost frame of that stack which is not of the runtime. Null when there is no stack.
const Frame* FrameOf(const Run& run, const Defect& defect);
const Frame* FrameOf(const std::vector<Frame>& stack);

std::string Qualified(const Frame& frame);  // "player!make_stream", or "player+0x1f30" without a name

// "leak: 1 stream, lost when cuEventCreate#2=OUT_OF_MEMORY,refuse failed, in 3 trials"
std::string Headline(const Run& run, const Defect& defect);
std::string Headline(const Finding& finding);

// "1 stream acquired and never released when cuEventCreate#2=OUT_OF_MEMORY,refuse failed; load returned without cuStreamDestroy."
std::string Sentence(const Run& run, const Defect& defect);

}  // namespace cuaudit::report
