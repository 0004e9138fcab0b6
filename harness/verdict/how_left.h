// SPDX-License-Identifier: MIT
// how_left.h: what is known of an object that is left: how it stayed, how its release answered, and the context that was to take it along.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

// In production a process without an end was killed, or still runs: what it held may be released yet, or died with it.
[[nodiscard]] bool WasCutOff(const Object& object, const Facts& facts);

// For left_at_exit: gone with its context, held by a thread or process that still ran.
[[nodiscard]] Details HowItStayed(const Object& object, const Facts& facts);

// For a leak whose release the driver declined: "cuMemAddressFree answered INVALID_VALUE". Empty when its record is gone.
[[nodiscard]] Details HowItAnswered(const Evidence& trial, const Site& release);

// Contexts that the program made itself and could not destroy, because the plan refused that; and what they would have taken along. Borrows
// the ledger.
//
// What the program leaves to the end of its own context is not lost (relied_on_context). When the plan refuses that end, it is left for the
// same reason as the context: no program can do better at that point.
class UndestroyedContexts {
 public:
  explicit UndestroyedContexts(const Ledger& ledger);
  // The refused destruction that would have taken the live object along; null for none.
  [[nodiscard]] const Site* EndOf(const Object& object) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Object*> contexts_;  // by process and handle
};

}  // namespace cuaudit::harness
