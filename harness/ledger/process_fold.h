// SPDX-License-Identifier: MIT
// process_fold.h: applies the records of one process, in the order of their tickets, to its account.
//
//   Owns      the account, contexts and graphs of the process. Borrows the books.
//   Errors    a record that makes no sense has no effect.
//   Source    the effect of each call is its row in faults/driver/effects.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/ledger/account.h"
#include "harness/ledger/address_space.h"
#include "harness/ledger/contexts.h"
#include "harness/ledger/graphs.h"

namespace cuaudit::harness {

// A handle or an address that belongs to somebody else, so that whoever asked for it must not release it. README.md, section "What a getter
// lends", has each call with the sentence of the headers.
struct Lent {
  driver::Kind kind{};  // of the call that would release it
  std::uint64_t handle = 0;
  // False where code without records may have acquired the object and may release it. Then only a release that the driver declines is
  // wrong.
  bool sure = false;
};

// What a call that has succeeded lends; empty for all others. In lent.cc.
[[nodiscard]] std::optional<Lent> LentBy(const faults::Record& record);

class ProcessFold {
 public:
  ProcessFold(Books* books, std::uint32_t pid)
      : account_(books, pid), contexts_(&account_), graphs_(&account_, &contexts_), first_object_(books->ledger.objects.size()) {}
  ProcessFold(Books* books, std::uint32_t pid, const ProcessFold* parent, std::uint64_t when)
      : account_(books, pid, &parent->account_, when),
        contexts_(&account_),
        graphs_(&account_, &contexts_),
        first_object_(books->ledger.objects.size()),
        looked_at_(parent->looked_at_) {}
  // A copy of `other` that writes to `books`. `parent` is the copy of the process that forked this one.
  ProcessFold(const ProcessFold& other, Books* books, const ProcessFold* parent) : ProcessFold(other) {
    account_.WriteTo(books, parent == nullptr ? nullptr : &parent->account_);
    contexts_.Follow(&account_);
    graphs_.Follow(&account_, &contexts_);
  }
  ProcessFold& operator=(const ProcessFold&) = delete;

  // Argument records of a call that tell of other objects (faults::kDescriptor, kStandsOn, kLaunchWords, kLends, kNames).
  using Told = std::span<const faults::Record* const>;

  // Applies what takes effect at the begin of a call: uses, releases, and retains of the primary context.
  void Enter(const faults::Record& record, const Graphs::Addresses& addresses);
  // Applies what takes effect at the end of a call: acquisitions, answers of queries, and releases of the primary context.
  void Return(const faults::Record& record, const Graphs::Addresses& addresses, Told told);
  void Host(const faults::Record& record);
  void Replaced(const faults::Record& record);  // exec replaced the process image
  void Mark(const faults::Record& record);
  // What the graph node of `call`, which comes next, was given and the arguments of the call do not say (faults::ArgumentFlag); null:
  // nothing.
  void NodeContent(const faults::Record* content, const faults::Record& call);
  // A proved misuse: the wrong call, and the call that it collides with.
  void Misuse(const faults::Record& record, const Site& where, const Site& other);
  void RuntimeExit() { contexts_.RuntimeExit(); }
  void Exit() { exited_ = true; }
  void Finish();
  bool IsParentOf(const ProcessFold& child) const { return child.account_.parent() == &account_; }

 private:
  ProcessFold(const ProcessFold&) = default;

  void Carry(const faults::Record& record, const Graphs::Addresses& addresses);
  void CheckUses(const faults::Record& record, const driver::EffectRow& row);
  // In told_objects.cc.
  Graphs::Addresses WithCode(const faults::Record& record, const Graphs::Addresses& addresses, Told told);
  void CheckCode(const faults::Record& record);
  void FollowFoundations(const faults::Record& record, Told told);
  void TakeDescriptors(const faults::Record& record, const faults::Record& told);
  bool IsToldDescriptor(std::uint64_t descriptor);
  bool SettleDeclinedPeerAccess(const faults::Record& record, Answer answer);  // in peer_access.cc
  void Release(const faults::Record& record, const driver::EffectRow& row, Answer answer);
  void Acquire(const faults::Record& record, const driver::EffectRow& row);
  std::int64_t MappedExternal(const faults::Record& record);
  void AcquireUnowned(const faults::Record& record, const driver::EffectRow& row);
  void BorrowAnswers(const faults::Record& record);
  void Lend(const faults::Record& record);
  void ReleaseHeld(driver::Kind kind, const faults::Record& record);
  void ClosedTooOften(const faults::Record& record);
  void ReleaseLibrary(const faults::Record& record);
  void HostMap(Object object, const faults::Record& record);
  // The memory of the record is gone, and these mappings with it.
  void GiveBack(const std::vector<std::int64_t>& mappings, const faults::Record& record);
  void FollowAddresses(const faults::Record& record, const driver::EffectRow& row, const Graphs::Addresses& addresses);

  Account account_;
  Contexts contexts_;
  Graphs graphs_;
  HostMappings host_mappings_;
  std::size_t first_object_;  // objects of this process image have this index or a higher one
  bool calls_ = false;        // it called the driver
  bool looked_at_ = false;    // host probes watched it
  const faults::Record* died_in_free_ = nullptr;
  bool exited_ = false;
};

}  // namespace cuaudit::harness
