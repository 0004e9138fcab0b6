// SPDX-License-Identifier: MIT
// other_call.h: which rules use the other call of a violation (Violation::other) to tell violations apart, and for which it was the
// release.
#pragma once

#include "harness/ledger/rules.h"

namespace cuaudit::harness {

// True when the other call tells one violation from another: a collision is its two calls. Otherwise the object and the wrong call tell,
// and the other call only says how the object came to be gone.
constexpr bool OtherTellsApart(Rule rule) { return rule != Rule::DoubleRelease && rule != Rule::UseAfterRelease && rule != Rule::Deficit; }

// True when the other call released the object before the program went on to use it.
constexpr bool OtherReleased(Rule rule) {
  return rule == Rule::DoubleRelease || rule == Rule::UseAfterRelease || rule == Rule::DestroyedUnderUser || rule == Rule::UsedAfterFree;
}

}  // namespace cuaudit::harness
