// SPDX-License-Identifier: MIT
// how_left.h: what is known of an object that is left: how it stayed, how its release answered, and what kept its destructor from running.
#pragma once

#include <cstdint>
#include <map>

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// In production a process without an end was killed, or still runs: what it held may be released yet, or died with it.
[[nodiscard]] bool WasCutOff(const Object& object, const Facts& facts);

// For left_at_exit: gone with its context, held by a thread or process that still ran.
[[nodiscard]] Details HowItStayed(const Object& object, const Facts& facts);

// For a leak whose release the driver declined: "cuMemAddressFree answered INVALID_VALUE". Empty when its record is gone.
[[nodiscard]] Details HowItAnswered(const Evidence& trial, const Site& release);

// True for a call under `after` that made a graph, executable graph or user object. The program was told that the call failed, so nobody
// owes its release, and the user objects that it holds are never destroyed.
[[nodiscard]] bool MakesUnownedHolder(const faults::Record& call);

// The call that keeps a graph or user object alive: its release, which was refused, or one that MakesUnownedHolder. The destructors of user
// objects that it holds then never run. Empty when there is none.
[[nodiscard]] Site KeptFromDestruction(const Evidence& trial);

// Calls of the shared CUDA runtime, by RuntimeCallKey, that came no further than a driver call that the plan refused or denied and that
// is no release: the current context is asked for first, for example. What such a call was to release stays. One call may stand there
// several times.
using CutShort = std::multimap<std::uint64_t, Site>;
[[nodiscard]] CutShort CutShortIn(const Evidence& trial);

}  // namespace cuaudit::harness
