// SPDX-License-Identifier: MIT
// fault_text.h: what the text of one fault says about where it hits.
//
//   Threads   pure.
//   Faults    makes no driver calls.
#pragma once

#include <string>

#include "faults/plan/fault.h"

namespace cuaudit::harness {

// Addressed by call stack instead of by count: "cuMemAlloc@site=...#2=...".
inline bool IsBySite(const std::string& text) {
  faults::Fault fault;
  return faults::ParseFault(text, &fault).expected == nullptr && fault.site != 0;
}

// Counted from the fault before it: "cuMemFree#+1=...".
inline bool Follows(const std::string& text) {
  faults::Fault fault;
  return faults::ParseFault(text, &fault).expected == nullptr && fault.follows;
}

}  // namespace cuaudit::harness
