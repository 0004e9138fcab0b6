// SPDX-License-Identifier: MIT
// fault_text.h: how the text of a fault addresses its call.
#pragma once

#include <string>

#include "faults/plan/fault.h"

namespace cuaudit::harness {

// True for a fault addressed by call stack instead of by count: "cuMemAlloc@site=...#2=...".
inline bool IsBySite(const std::string& text) {
  faults::Fault fault;
  return faults::ParseFault(text, &fault).expected == nullptr && fault.site != 0;
}

// True for a fault counted from the fault before it: "cuMemFree#+1=...".
inline bool Follows(const std::string& text) {
  faults::Fault fault;
  return faults::ParseFault(text, &fault).expected == nullptr && fault.follows;
}

}  // namespace cuaudit::harness
