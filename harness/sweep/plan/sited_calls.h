// SPDX-License-Identifier: MIT
// sited_calls.h: the calls of several fault-free runs by place and turn, for a case whose calls have no fixed order.
//
//   Owns      its rows, which borrow the records of the journals.
//
// The n-th call from one call stack happens whichever thread makes it, if the program comes there n times. At each place the turns that
// every run took are certain; at a place that only some runs reach, only the first turn is. Further turns are listed as unsure, because a
// fault for them might find nothing to hit.
//
// With several threads the live objects at a turn depend on which thread takes it, so states are not compared. Instead the first turns of a
// place stand for later ones: three for each thread that comes there, one more, and the last one that every run takes. A loop typically
// does something else in its first, second and perhaps third round (call_state.h).
#pragma once

#include <span>

#include "harness/sweep/plan/call_state.h"

namespace cuaudit::harness {

// In the order of the first run, then calls that only later runs have. With several threads: by name, place and turn.
[[nodiscard]] CallStates SitedCalls(std::span<const CallStates> runs);

}  // namespace cuaudit::harness
