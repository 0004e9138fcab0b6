// SPDX-License-Identifier: MIT
// contexts.h: created and primary contexts of one process and the context stack of each of its threads.
//
//   Owns      reference lists and stacks; borrows the account.
//   Threads   a value; no shared state. Stacks are kept by thread id.
//   Errors    imbalance becomes a violation.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0, context and primary context management.
//
// Primary references: a retain counts from its begin and a release from its end, so that two threads that hand the context over never
// look like its last release. A context that was current before the program first retained it is also held by somebody whom we do not
// see (the CUDA runtime): it does not die at our count of zero.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "harness/ledger/account.h"

namespace cuaudit::harness {

class Contexts {
 public:
  explicit Contexts(Account* account) : account_(account) {}
  Contexts(const Contexts& other, Account* account) : Contexts(other) { account_ = account; }
  Contexts& operator=(const Contexts&) = delete;

  // Notes what is current; called for every record before anything else.
  void See(const faults::Record& record);

  void RetainPrimary(const faults::Record& record);
  void DenyPrimary(const faults::Record& record);
  void ReleasePrimary(const faults::Record& record, Outcome outcome);
  void ResetPrimary(const faults::Record& record, Outcome outcome);

  // From here on the runtime releases, not the program: its last reference takes nobody's context away.
  void RuntimeExit() { runtime_exits_ = true; }

  void Create(const faults::Record& record);
  void Attach(const faults::Record& record);
  void Destroy(const faults::Record& record, Outcome outcome);

  void CreateGreen(const faults::Record& record);
  void ViewGreen(const faults::Record& record);
  // Its streams die with it; the primary context too, if nobody else holds it.
  void DestroyGreen(const faults::Record& record, Outcome outcome);

  void Push(const faults::Record& record);
  void Pop(const faults::Record& record, Outcome outcome);
  void Set(const faults::Record& record);

  // What the calls of that thread have made current, 0 when they have made nothing so.
  std::uint64_t CurrentOf(std::uint32_t tid) const;

  // Reports what was pushed in the cycle that this mark ends and is still there.
  void EndCycle(const faults::Record& record);
  // Reports every stack that is not back where its thread began.
  void Finish();

 private:
  Contexts(const Contexts&) = default;

  enum class Origin : std::uint8_t { Pushed, Created, SetCurrent };
  struct StackEntry {
    std::uint64_t context = 0;
    std::int64_t object = -1;  // kind context_stack_entry, for pushed entries
    Origin origin = Origin::Pushed;
    bool reported = false;
  };
  struct Stack {
    std::uint32_t tid = 0;
    std::vector<StackEntry> entries;
    std::vector<Site> below;  // pops that took what was current before we saw the thread
    bool pushed = false;
    std::uint32_t told_there = 0;  // pops that were carried out and told to have failed
  };
  struct Primary {
    std::vector<std::int64_t> references;
    std::vector<std::uint32_t> threads;  // who retained, in step with references
    std::uint64_t context = 0;
    bool seen = false;
    bool held_elsewhere = false;
    std::uint32_t greens = 0;  // green contexts that hold it
    std::uint32_t denied = 0;  // references that the program was told it did not get
  };
  struct Green {
    std::uint64_t device = 0;
    std::uint64_t view = 0;  // the context that stands for it, once somebody asked
  };

  Primary& PrimaryOf(const faults::Record& record);  // of the device that a retain names
  void OrphanUnheld(const Primary& primary, const faults::Record& record);
  Stack& StackOf(const faults::Record& record);
  void TakeTop(Stack& stack, const faults::Record& record);
  void Report(StackEntry& entry);
  bool Destroyed(std::uint64_t context);
  std::size_t ReferenceToRelease(const Primary& primary, std::uint32_t tid);

  Account* account_;
  std::unordered_map<std::uint64_t, Primary> primaries_;  // by device
  std::unordered_map<std::uint64_t, Green> greens_;       // by handle
  std::vector<Stack> stacks_;                             // in order of appearance
  std::unordered_map<std::uint32_t, std::size_t> stack_of_thread_;
  std::unordered_set<std::uint64_t> current_;
  std::uint64_t last_current_ = 0;
  bool runtime_exits_ = false;
};

}  // namespace cuaudit::harness
