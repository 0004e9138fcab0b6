// SPDX-License-Identifier: MIT
// put_back.h: state that a function changes for a while and puts back: the current context of a thread, and the capture of a stream.
//
//   Owns      what the fault-free run does at each place. Borrows the runs that it is given.
//   Threads   one thread.
//
// The fault-free run shows which cuCtxSetCurrent, cuCtxPopCurrent and cuStreamBeginCapture are undone by the same function. A trial in
// which that function returns without undoing the call leaves the caller something that the caller did not have before. README.md, section
// "What a function puts back", says what is judged and what is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "faults/journal/record.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

class PutBack {
 public:
  explicit PutBack(const Evidence& fault_free);
  // One finding for each change that the trial made where the fault-free run undoes it, and did not undo.
  std::vector<TrialFinding> Missing(const Evidence& trial) const;
  // As RestoredSettings::ReturnFrom, of a change that the fault-free run undoes.
  std::optional<std::uint64_t> ReturnFrom(const Evidence& run, std::uint64_t place, std::uint64_t before) const;

  struct Undone {
    bool always = true;        // whenever the fault-free run made the change
    bool in_its_cycle = true;  // in the same marked cycle
    std::size_t level = 0;     // frame of the change from which the function that undoes it was called; beyond the frames: unknown
  };

 private:
  // What is expected of a change of the context that only the trial makes.
  Undone Expected(const Evidence& trial, const faults::Record& change) const;

  std::map<std::uint64_t, Undone> undone_;  // by SiteKey of the change
  std::set<std::uint64_t> entered_;         // instructions that called a function which made driver calls (FrameKey)
  std::set<std::uint64_t> leaving_;         // of these, the ones whose function left another context current
};

// True when the run may leave a context or a capture that was there before it in another state.
[[nodiscard]] bool MayLeaveChanged(const Evidence& run);

}  // namespace cuaudit::harness
