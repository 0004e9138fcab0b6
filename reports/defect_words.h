// SPDX-License-Identifier: MIT
// defect_words.h: defects in words, for all writers: what is lost, and how it came about step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/run.h"
#include "reports/source_root.h"

namespace cuaudit::report {

// The first finding of the first member: it shows the defect with the fewest faults.
const Finding& RootOf(const Run& run, const Defect& defect);

// "leak, not_recovered": each rule once, in the order of the members.
std::string RulesOf(const Run& run, const Defect& defect);

// "1 context, 7 host_heap (640 bytes)": what is lost, by kind in the order of the members. "1 stream (leak), 1 stream (deficit)" where a
// kind is lost and misused, too. Empty when nothing has a kind.
std::string AmountOf(const Run& run, const Defect& defect);

// "close_device returned without cuCtxDestroy". Empty when nobody is blamed, or when a call is wrong by itself and shows who made it.
std::string BlameOf(const Run& run, const Defect& defect);

std::string_view Name(BlamedBecause because);  // "held_it"

// True when an entry of the suppressions file accepts it and has not expired.
bool IsSuppressed(const Defect& defect);

// By number of the finding: whether only suppressed defects have it.
std::vector<bool> SuppressedFindings(const Run& run);

// "3 defects, 438 findings"; "1 defect" when it is one finding. Without suppressed ones, whose number comes behind: "1 defect; 2
// suppressed".
std::string DefectCount(const Run& run);

// "2 defects suppressed"; empty when there are none.
std::string SuppressedCount(const Run& run);

// "suppressed until 2027-03-31 by ann: waits for the driver (suppressions.toml:7)", "its suppression expired on ..."; empty when no entry
// fits.
std::string SuppressionOf(const Defect& defect);

// "taken for open_device of the base (function renamed), v2-0123456789abcdef: open_device -> device_open src/device.c:3". Where the blamed
// function is another one than the acquiring one, both are told of the new program: either of them may be what has another name.
std::string Describe(const Run& run, const Defect& defect, const TakenFor& one);

// Driver objects of left_at_exit.
std::uint64_t ObjectsLeft(const Run& run);

// How a defect came about, step by step, and the same in one sentence.

struct Step {
  std::string says;  // "acquired by cuStreamCreate"
  std::vector<Frame> stack;
  bool whole = true;         // false: `stack` is one function, and not the call stack of an event
  bool on_way_back = false;  // a call that the program makes after the failing one
};

// In the order in which they happen: the object is acquired, calls fail, the program makes its way back, a function returns without the
// release, the object is lost. What a rule does not have is left out. Of a long way back its first fifty calls are told.
std::vector<Step> StepsOf(const Run& run, const Defect& defect);

// Beside the path: where the fault-free run releases the object, or puts the setting back. Absent when it does not.
std::optional<Step> ReleaseOf(const Run& run, const Defect& defect);

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
