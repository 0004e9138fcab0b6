// SPDX-License-Identifier: MIT
// how_left.h: what is known of an object that is left: how it stayed, and how its release answered.
#pragma once

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// In production a process without an end was killed, or still runs: what it held may be released yet, or died with it.
[[nodiscard]] bool WasCutOff(const Object& object, const Facts& facts);

// For left_at_exit: gone with its context, held by a thread or process that still ran.
[[nodiscard]] Details HowItStayed(const Object& object, const Facts& facts);

// For a leak whose release the driver declined: "cuMemAddressFree answered INVALID_VALUE". Empty when its record is gone.
[[nodiscard]] Details HowItAnswered(const Evidence& trial, const Site& release);

}  // namespace cuaudit::harness
