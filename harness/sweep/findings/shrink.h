// SPDX-License-Identifier: MIT
// shrink.h: proposes smaller lists of faults that may show the same finding.
//
//   Source    delta debugging, one step at a time: lists of two or three faults need no halving.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuaudit::harness {

struct FaultList {
  std::vector<std::string> faults;
  std::vector<std::uint64_t> sites;  // one per fault; 0: any
};

// True when more than one call fails: there are several faults, or one fault hits several calls.
bool CanShrink(const std::vector<std::string>& faults);

// All lists that are one step smaller, the smallest step first: without one of the faults, with a shorter burst (the shortest first), or
// with a single refusal instead of `persist`.
std::vector<FaultList> SmallerLists(const FaultList& list);

}  // namespace cuaudit::harness
