// SPDX-License-Identifier: MIT
// restored_entries.h: finds the pushes that put back a context that cuCtxSetCurrent or cuCtxCreate had made current.
//
//   Owns      its notes. Borrows the run while it reads it.
//   Threads   one thread.
//
// A function that pops the entry of such a context and pushes the context again (the one that was popped, or one that the entry had held
// before) owes no pop for that push. The same two calls in another order of functions (one makes the entry and pops it, the other one
// pushes and forgets the pop) leave an entry too many. README.md, section "What a function puts back", says how call stacks tell the two
// apart.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

enum class Restored : std::uint8_t { No, Perhaps, Yes };  // Perhaps: the pop is as near to the push as to the call that made the entry

class RestoredEntries {
 public:
  explicit RestoredEntries(const Evidence& run);
  // Whether the push put back what its thread had taken off in the same marked cycle.
  [[nodiscard]] Restored Of(const Site& push) const;
  // True for a pop that took off an entry that nobody had pushed.
  [[nodiscard]] bool IsTaking(const Site& pop) const { return takings_.count(pop.begin) != 0; }
  // True when the function that made such a pop put a context back.
  [[nodiscard]] bool IsPutBack(const Site& pop) const { return put_back_.count(pop.begin) != 0; }

 private:
  std::unordered_map<std::uint64_t, Restored> pushes_;  // by ticket; those that put nothing back are left out
  std::unordered_set<std::uint64_t> takings_;           // pops, by ticket
  std::unordered_set<std::uint64_t> put_back_;          // the pops of takings_ whose function put a context back
};

}  // namespace cuaudit::harness
