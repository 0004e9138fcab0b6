// SPDX-License-Identifier: MIT
// shrink.h: which smaller lists of faults may show the same finding as a larger one.
//
//   Owns      its texts.
//   Threads   pure.
//   Faults    makes no driver calls.
//   Source    delta debugging, one step at a time: lists of two or three faults need no halves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/sweep/trial.h"

namespace cuaudit::harness {

struct FaultList {
  std::vector<std::string> faults;
  std::vector<std::uint64_t> sites;  // one per fault, 0: any
};

// More than one call is made to fail: several faults, or one that hits several calls.
bool CanShrink(const std::vector<std::string>& faults);

// Every list one step smaller, the smallest step first: without one of the faults; with a shorter burst (the shortest first), or a single
// refusal instead of `persist`.
std::vector<FaultList> SmallerLists(const FaultList& list);

// The trial's own finding that says the same, in whatever number and whichever faults led to it; null for none. An object that was left
// behind is the same whether its context died with it (orphaned) or, that release having failed too, did not (leak).
const TrialFindingText* FindSame(const TrialResult& trial, const TrialFindingText& finding);

}  // namespace cuaudit::harness
