// SPDX-License-Identifier: MIT
// sited_calls.h: the calls of several fault-free runs by place and turn there, for a case whose calls have no order that holds.
//
//   Owns      its rows; they borrow the records of the journals.
//   Threads   pure.
//   Faults    makes no driver calls.
//
// The n-th call from one call stack is made whichever thread takes which turn, as long as the program comes there n times. So of each place
// the turns count that every run took, and of a place that only some runs come to the first one. What goes beyond that is there, and
// unsure: a fault for it might find nothing to hit.
//
// What is alive at a turn depends on who takes it, so with several threads no state makes two turns one. The first turns stand for the
// later ones: as many as all threads that come to the place need for three visits each, one more, and the last that every run takes. A loop
// does something else on its first, second and perhaps third round (call_state.h).
#pragma once

#include <span>

#include "harness/sweep/call_state.h"

namespace cuaudit::harness {

// In the order of the first run, then what only later ones have; with several threads by name, place and turn.
[[nodiscard]] CallStates SitedCalls(std::span<const CallStates> runs);

}  // namespace cuaudit::harness
