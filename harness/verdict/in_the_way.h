// SPDX-License-Identifier: MIT
// in_the_way.h: what refused and denied calls left in the way of the next cycle, and what of that cycle they explain.
//
//   Owns      a list of objects. Borrows the evidence of the trial.
//
// A refused call was not carried out. A denied one was (`after`), and the program was told that it had failed.
#pragma once

#include <vector>

#include "faults/driver/kinds.h"
#include "harness/verdict/evidence/evidence.h"

namespace cuaudit::harness {

class InTheWay {
 public:
  explicit InTheWay(const Evidence& trial);

  // True when something is left of which a program may know without a call that fails.
  [[nodiscard]] bool any() const { return !kept_.empty() || moved_; }
  // True for a second release of what a denied call ended.
  [[nodiscard]] bool IsSecondRelease(const faults::Record& failing) const;
  // True when the call may fail because of what is left.
  [[nodiscard]] bool Explains(const faults::Record& failing) const;
  // True when the object may still be there because of what is left. `by_itself`: the fault-free run releases the objects of its place.
  [[nodiscard]] bool Explains(const Object& left, bool by_itself) const;

 private:
  [[nodiscard]] bool Keeps(const faults::Record& release) const;
  [[nodiscard]] bool Left(driver::Kind kind, const faults::Record& failing) const;
  [[nodiscard]] bool SpeaksOfLeft(const faults::Record& failing) const;
  [[nodiscard]] bool DisturbsStack(const faults::Record& call) const;
  [[nodiscard]] bool IsAstray(const faults::Record& call) const;
  template <typename Accepts>
  [[nodiscard]] bool Names(const faults::Record& call, Accepts accepts) const;

  const Evidence& trial_;
  std::vector<const Object*> kept_;  // their release was refused
  bool moved_ = false;               // a denied call changed a context stack
};

}  // namespace cuaudit::harness
