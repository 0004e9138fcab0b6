// SPDX-License-Identifier: MIT
// contexts.h: created and primary contexts of one process, and the context stack of each of its threads.
//
//   Owns      reference lists and stacks, the stacks by thread id. Borrows the account.
//   Errors    imbalance becomes a violation.
//   Source    CUDA Driver API 13.0, context and primary context management.
//
// A retain of a primary context counts from its begin and a release from its end, so a hand-over between two threads never looks like the
// last release. A context that was current before the program first retained it is also held by code without records, such as the CUDA
// runtime. Such a context does not end when the recorded count reaches zero.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "harness/ledger/account.h"

namespace cuaudit::harness {

class Contexts {
 public:
  explicit Contexts(Account* account)
      : account_(account),
        primaries_(account->books().memory),
        stacks_(account->books().memory),
        stack_of_thread_(account->books().memory),
        current_(account->books().memory) {}
  void Follow(Account* account) { account_ = account; }  // of a copy

  // Notes which context is current. Called for every record, before anything else.
  void See(const faults::Record& record);

  void RetainPrimary(const faults::Record& record);
  void DenyPrimary(const faults::Record& record);
  void ReleasePrimary(const faults::Record& record, Answer answer);
  void ResetPrimary(const faults::Record& record, Answer answer);

  // From here on the releases are the CUDA runtime's and not the program's. The last primary release then orphans no objects.
  void RuntimeExit() { runtime_exits_ = true; }

  void Create(const faults::Record& record);
  void Destroy(const faults::Record& record, Answer answer);
  // The driver made the context, or attached it once more. The program was told that the call failed.
  void DenyContext(std::uint64_t context, bool attached);

  void CreateGreen(const faults::Record& record);
  void ViewGreen(const faults::Record& record);
  // Ends the streams of the green context. The primary context ends, too, when nothing else holds it.
  void DestroyGreen(const faults::Record& record, Answer answer);
  // The call as one in the primary context, when it was made in the view of a green context: then a copy, until the next such call.
  const faults::Record& BehindView(const faults::Record& record);

  void Push(const faults::Record& record);
  // The program does not know of this entry. A pop that finds no other one takes it.
  void DenyPush(const faults::Record& record);
  // The driver made another context current, or none. The program believes that the former one still is.
  void DenySet(const faults::Record& record);
  // The plan refused a call that was to make a context current, perhaps one that the cycle had popped.
  void RefuseToSet(const faults::Record& record);
  void Pop(const faults::Record& record, Answer answer);
  void Set(const faults::Record& record);

  // The context that the recorded calls of the thread made current; 0 when they made none current.
  std::uint64_t CurrentOf(std::uint32_t tid) const;
  // The context that the plan did not let the thread make current; 0 when the thread has chosen or made one or none since, when a cycle has
  // begun, or when nothing was refused.
  std::uint64_t RefusedTo(std::uint32_t tid) const {
    const Stack* const stack = KnownStack(tid);
    return stack == nullptr ? 0 : stack->refused;
  }

  // Reports each context from before an earlier cycle that the cycle popped and that is not back when the next cycle begins.
  void BeginCycle(const faults::Record& record);
  // Reports each entry that was pushed in the ending cycle and was not popped.
  void EndCycle(const faults::Record& record);
  // Reports every stack that is not back where its thread began.
  void Finish();

 private:
  enum class Origin : std::uint8_t { Pushed, Created, SetCurrent };
  struct StackEntry {
    std::uint64_t context = 0;
    std::int64_t object = -1;  // of kind context_stack_entry; -1 for entries that were not pushed
    Origin origin = Origin::Pushed;
    bool reported = false;
    std::uint32_t cycle = 0;  // in which the entry was made
    Site refused = {};        // of an entry that was not pushed: the pop or destruction that the plan refused
    std::uint64_t older = 0;  // the context that the entry had before the cycle set another one; 0: none
    bool restores = false;    // it stands where an older entry with the same context stood, which its cycle popped
  };
  struct Taken {
    std::uint64_t context = 0;
    Site site;
    std::uint32_t cycle = 0;  // of the pop
    std::uint32_t from = 0;   // the cycle in which the entry was made
    bool pushed = false;      // the program had pushed it, so the pop may be the other half of a pair around the begin of the cycle
    Site missed = {};         // a later pop, outside of the cycle, that found nothing left
    bool owed = true;         // false: taken off by cuCtxSetCurrent, or another context had been set there; the former one may come back
  };
  struct Stack {
    std::uint32_t tid = 0;
    std::vector<StackEntry> entries;
    std::vector<Site> below;   // pops that took a context from before the first record of the thread
    std::vector<Taken> taken;  // pops of the present cycle that took a context from before the cycle
    std::vector<Taken> owed;   // of these, what an ended cycle did not put back
    std::uint64_t older = 0;   // the context of the entry below all known ones, before `set_cycle` set another one
    std::uint32_t set_cycle = 0;
    bool returned = false;  // what a cycle had taken was put back between two cycles
    bool pushed = false;
    std::uint32_t told_there = 0;  // entries that were taken off although the program was told that the call failed
    std::uint32_t denied = 0;      // entries that were made although it was told so; the topmost ones
    std::uint32_t denied_in = 0;   // the cycle of the last one
    std::uint64_t refused = 0;     // context that the plan did not let the thread choose (RefusedTo)
  };
  struct Primary {
    std::vector<std::int64_t> references;
    std::uint64_t context = 0;
    bool seen = false;
    bool held_elsewhere = false;
    std::uint32_t greens = 0;     // green contexts that hold the primary context
    std::uint32_t denied = 0;     // references that the program was told it did not get
    std::uint64_t denied_at = 0;  // the first of them
    DeniedReleases denied_releases;
  };
  struct Green {
    std::uint64_t device = 0;
    std::uint64_t view = 0;  // the context that stands for the green context; 0 until the program asks
  };

  Primary& PrimaryOf(const faults::Record& record);  // of the device that the retain names
  void OrphanUnheld(const Primary& primary, const faults::Record& record);
  bool GivesBackDenied(Primary& primary, const faults::Record& record, Answer answer);
  void BelieveUses(const Primary& primary, std::uint32_t pid);
  void RefuseDestruction(std::int64_t newest, const faults::Record& record);
  Stack& StackOf(const faults::Record& record);
  const Stack* KnownStack(std::uint32_t tid) const;  // null: no call of the thread has changed its stack
  void TakeTop(Stack& stack, const faults::Record& record, bool destroyed);
  static void Deny(Stack& stack, const faults::Record& record);
  static void TryPutBack(Stack& stack, const faults::Record& record);
  void Keep(StackEntry& entry, const faults::Record& record);
  bool IsKept(const StackEntry& entry) const;
  bool IsOlder(const Stack& stack, std::uint32_t cycle) const;
  void NoteTaken(Stack& stack, const faults::Record& record, bool owed) const;
  static std::optional<Taken> PutBack(Stack& stack, std::uint64_t context);
  static void Miss(Stack& stack, const Site& pop);
  void ReportTaken(Stack& stack, const Taken& taken);
  void Report(StackEntry& entry);
  void Violate(const Site& where, std::uint64_t handle = 0, std::int64_t object = -1);
  bool Destroyed(std::uint64_t context);
  bool EndsDenied(std::uint64_t context, bool detaches);
  const Object* KeptByRefusal(std::uint64_t context);
  std::size_t ReferenceToRelease(const Primary& primary, std::uint32_t tid);

  Account* account_;
  std::pmr::unordered_map<std::uint64_t, Primary> primaries_;  // by device
  std::unordered_map<std::uint64_t, Green> greens_;            // by handle
  std::pmr::vector<Stack> stacks_;                             // in order of appearance
  std::pmr::unordered_map<std::uint32_t, std::size_t> stack_of_thread_;
  std::unordered_map<std::uint64_t, std::int64_t> made_;     // contexts that were made here, and the object
  std::unordered_map<std::uint64_t, std::uint32_t> denied_;  // contexts whose creation was denied: how many references the driver counts
  std::pmr::unordered_set<std::uint64_t> current_;
  std::uint64_t last_current_ = 0;
  bool runtime_exits_ = false;
  faults::Record behind_;  // what BehindView answered last, if that was a copy
};

}  // namespace cuaudit::harness
