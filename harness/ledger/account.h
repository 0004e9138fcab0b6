// SPDX-License-Identifier: MIT
// account.h: the open account of one process: which handle stands for which object, and what releasing or using it means.
//
//   Owns      the handle table and the address space of its process; borrows the ledger that all accounts write to.
//   Threads   a value; no shared state.
//   Units     bytes; tickets.
//   Errors    a wrong release or use becomes a violation in the ledger.
//   Faults    makes no driver calls.
//   Source    ours. One object stands for one acquisition: an object retained twice has two rows, so that each reference keeps its site.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "harness/ledger/address_space.h"
#include "harness/ledger/arguments.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// The ledger under construction. `beneath` runs parallel to ledger.objects: the older reference to the same handle, -1 for none.
struct Books {
  Ledger ledger;
  std::vector<std::int64_t> beneath;

  Object& object(std::int64_t index) { return ledger.objects[static_cast<std::size_t>(index)]; }
  void Violate(Rule rule, driver::Kind kind, const faults::Record& record, std::uint64_t handle, std::int64_t object);
};

// What is known about one handle value.
struct HandleEntry {
  std::int64_t top = -1;   // the newest reference still held
  std::int64_t last = -1;  // the newest object ever made with this value
  std::uint32_t generation = 0;
  bool borrowed = false;               // handed out by a query: valid, and not ours to judge
  std::uint64_t graph_references = 0;  // user objects: what graphs hold
};

class Account {
 public:
  Account(Books* books, std::uint32_t pid) : books_(books), pid_(pid) {}
  // The child of `parent` by fork at ticket `when`: what the parent then held is silent here.
  Account(Books* books, std::uint32_t pid, const Account* parent, std::uint64_t when)
      : books_(books), pid_(pid), parent_(parent), forked_at_(when) {}
  // The same account in other books.
  Account(const Account& other, Books* books, const Account* parent) : Account(other) {
    books_ = books;
    parent_ = parent;
  }
  Account& operator=(const Account&) = delete;

  // A new object. What still stands under the same handle must have gone a way we do not see, and is closed silently.
  std::int64_t Acquire(Object object, const faults::Record& record);
  // One more reference, beside those already held.
  std::int64_t Retain(Object object, const faults::Record& record);
  // Gives back `count` references of `handle`; `kind` stands for its family, the object's own kind counts in reports.
  void Release(driver::Kind kind, std::uint64_t handle, std::uint64_t count, const faults::Record& record, Outcome outcome);
  // The same for every mapping inside [base, base + bytes).
  void ReleaseMappings(std::uint64_t base, std::uint64_t bytes, const faults::Record& record, Outcome outcome);
  // Closes one object without judging.
  void Close(std::int64_t object, State state, const Site& site);
  // Every live object in `context` dies with it.
  void Orphan(std::uint64_t context, const Site& site);
  // How often that has happened to a context of that handle.
  std::uint64_t DeathsOf(std::uint64_t context) const {
    const auto found = deaths_.find(context);
    return found == deaths_.end() ? 0 : found->second;
  }
  // The same, but of those only the live objects of `kind` die; the others live in `heir` from now on.
  void OrphanKind(driver::Kind kind, std::uint64_t context, std::uint64_t heir, const Site& site);
  // The handle was answered by a query: it is valid now. `bytes`: how long the memory at an address is, 0 when nobody said.
  void Borrow(driver::Family family, std::uint64_t handle, std::uint64_t bytes = 0);
  // The driver made an object, the caller was told that it had not: valid from now on, may be released, and is nobody's leak.
  void AcquireUnowned(driver::Family family, std::uint64_t handle, std::uint64_t bytes);
  // A use of `handle` (or of an address inside an allocation) by `record`.
  void CheckUse(driver::Family family, std::uint64_t handle, const faults::Record& record);

  // The program's own pool hands out [address, address + bytes), or takes it back.
  void HandOut(std::uint64_t address, std::uint64_t bytes, const faults::Record& record);
  void TakeBack(std::uint64_t address, const faults::Record& record);
  // A use of memory inside of a block that was taken back and not handed out again.
  void CheckBlocks(std::uint64_t address, const faults::Record& record);

  HandleEntry* Find(driver::Family family, std::uint64_t handle);
  HandleEntry& Entry(driver::Family family, std::uint64_t handle);
  // True when the process that this one was forked from acquired the handle before the fork.
  bool Inherited(driver::Family family, std::uint64_t handle) const;

  AddressSpace& space() { return space_; }
  Books& books() { return *books_; }
  std::uint32_t pid() const { return pid_; }
  const Account* parent() const { return parent_; }
  std::uint64_t forked_at() const { return forked_at_; }
  // Graphs of this process may own memory that no recorded argument names, so an unknown address proves nothing.
  void set_graph_memory() { graph_memory_ = true; }
  // The plan left something behind in the driver: a release or the end of a capture was refused, or what was made was denied (`after`).
  // What the driver then declines to release was tried, and waits for that.
  void set_plan_left_something() { plan_left_something_ = true; }
  // The host's own blocks are recorded, so that a host address that somebody else gets is known.
  void set_host_probed() { host_probed_ = true; }
  // The newest object of that handle, or the allocation that the address lies in or last lay in; -1 for none that we know.
  std::int64_t ObjectAt(driver::Kind kind, std::uint64_t handle);
  // The released allocation that `address` lies in, -1 when it is alive, unknown or may be somebody else's by now.
  std::int64_t DeadObjectAt(std::uint64_t address) const;

 private:
  Account(const Account&) = default;

  struct Key {
    driver::Family family;
    std::uint64_t handle;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      std::uint64_t h = (key.handle ^ (static_cast<std::uint64_t>(key.family) << 56)) * 0x9e3779b97f4a7c15U;
      return static_cast<std::size_t>(h ^ (h >> 29));
    }
  };

  void ReleaseNothing(driver::Kind kind, HandleEntry* entry, std::uint64_t handle, const faults::Record& record, Outcome outcome);
  std::int64_t ReferenceToRelease(const HandleEntry& entry) const;
  std::int64_t Open(Object object, const faults::Record& record, HandleEntry& entry);
  void Unlink(HandleEntry& entry, std::int64_t object);

  Books* books_;
  std::uint32_t pid_;
  const Account* parent_ = nullptr;
  std::uint64_t forked_at_ = 0;
  bool graph_memory_ = false;
  bool plan_left_something_ = false;
  bool host_probed_ = false;
  std::unordered_map<Key, HandleEntry, KeyHash> handles_;
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>> by_context_;
  std::unordered_map<std::uint64_t, std::uint64_t> deaths_;  // by context
  std::map<std::uint64_t, std::int64_t> mappings_;
  AddressSpace space_;
  AddressSpace blocks_;  // of the program's own pools
};

}  // namespace cuaudit::harness
