// SPDX-License-Identifier: MIT
// own_contexts.h: contexts that the program made itself and could not destroy, because the plan refused that; and what they would have
// taken along.
//
//   Owns      nothing. Borrows the ledger.
//
// What the program leaves to the end of its own context is not lost (relied_on_context). When the plan refuses that end, it is left for the
// same reason as the context: no program can do better at that point.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

class UndestroyedContexts {
 public:
  explicit UndestroyedContexts(const Ledger& ledger);
  // The refused destruction that would have taken the live object along; null for none.
  [[nodiscard]] const Site* EndOf(const Object& object) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Object*> contexts_;  // by process and handle
};

}  // namespace cuaudit::harness
