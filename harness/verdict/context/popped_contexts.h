// SPDX-License-Identifier: MIT
// popped_contexts.h: finds the pops by which a process takes off a context of its own, which it made and destroys later.
//
//   Owns      its notes. Borrows the journal.
//   Threads   one thread. Calls come in the order in which the program made them.
//
// Such a pop takes nothing from a caller. A pop that undoes a push, which failed or was undone already, takes off the same context when the
// maker of the context is its caller. Call stacks tell the two apart: the pop that undoes a push shares a caller with the push (the
// function that pushes and pops) that it does not share with the creation and the destruction of the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "faults/journal/journal_view.h"
#include "faults/journal/record.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

class PoppedContexts {
 public:
  struct Owned {
    std::size_t step = 0;
    Site created;
  };

  explicit PoppedContexts(const faults::JournalView& journal) : journal_(&journal) {}

  // Notes a call. `step` names it in ended() and owned() if it is a pop.
  void Take(const faults::Record& record, std::size_t step);

  // Pops of a context that the thread's next call destroys.
  const std::vector<std::size_t>& ended() const { return ended_; }
  // Pops of a context that the process created and destroys later, where its creation left it. The thread did not lack it meanwhile.
  const std::vector<Owned>& owned() const { return owned_; }

 private:
  struct Pop {
    std::size_t step = 0;
    std::uint64_t context = 0;
    std::uint32_t tid = 0;
    std::uint32_t stack = 0;
    std::size_t to_push = 0;  // distance to the nearest push before it
  };
  struct Made {
    Site created;
    std::int64_t pushed = 0;  // pushes whose pop has not come yet
    std::vector<Pop> pops;    // where the creation left it
  };
  struct Thread {
    std::optional<Pop> last;         // the last call, when it was a pop
    std::set<std::uint32_t> pushes;  // call stacks, also of pushes that failed
  };

  std::size_t ToPush(std::uint32_t stack, const Thread& thread) const;
  void TakeDestroy(const faults::Record& record, const std::optional<Pop>& last, const Thread& thread);

  const faults::JournalView* journal_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Made> made_;  // by process and handle
  std::map<std::uint32_t, Thread> threads_;
  std::vector<std::size_t> ended_;
  std::vector<Owned> owned_;
};

}  // namespace cuaudit::harness
