// SPDX-License-Identifier: MIT
// account.h: the handles of one process, the object that each handle stands for, and the rules for releasing and using them.
//
//   Owns      the handle table and the address spaces of the process. Borrows the books, which all accounts share.
//   Units     bytes; tickets.
//   Errors    a wrong release or use becomes a violation in the ledger.
//
// An object stands for one acquisition. An object that is retained twice has two rows, so that each reference keeps its own site.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/ledger/address_space.h"
#include "harness/ledger/arguments.h"
#include "harness/ledger/denied_releases.h"
#include "harness/ledger/foundations.h"
#include "harness/ledger/ledger.h"

namespace cuaudit::harness {

// The ledger under construction. `beneath` is parallel to ledger.objects and holds the next older reference to the same handle, or -1.
struct Books {
  explicit Books(std::pmr::memory_resource* of_fold) : memory(of_fold) {}
  // What a copy adds does not lie in the memory of the original.
  Books(const Books& other) : ledger(other.ledger), beneath(other.beneath) {}
  Books& operator=(const Books&) = delete;

  Ledger ledger;
  std::vector<std::int64_t> beneath;
  std::pmr::memory_resource* memory = std::pmr::get_default_resource();

  Object& object(std::int64_t index) { return ledger.objects[static_cast<std::size_t>(index)]; }
  Violation& Violate(Rule rule, driver::Kind kind, const faults::Record& record, std::uint64_t handle, std::int64_t object);
};

// What is known about one handle value.
struct HandleEntry {
  std::int64_t top = -1;   // newest reference that is still held
  std::int64_t last = -1;  // newest object that ever had this value
  std::uint32_t generation = 0;
  bool borrowed = false;               // a query answered this handle: it is valid, and its release is not judged
  std::uint64_t graph_references = 0;  // for user objects: references that graphs hold
  std::uint32_t denied = 0;            // references that the program was told it did not get
  DeniedReleases denied_releases;
};

class Account {
 public:
  Account(Books* books, std::uint32_t pid) : Account(books, pid, nullptr, 0) {}
  // The account of a process that `parent` forked at ticket `when`. What the parent held at that time is not judged here.
  Account(Books* books, std::uint32_t pid, const Account* parent, std::uint64_t when)
      : books_(books),
        pid_(pid),
        parent_(parent),
        forked_at_(when),
        handles_(kFirstHandles, books->memory),
        by_context_(books->memory),
        space_(books->memory),
        blocks_(books->memory) {}
  // Of a copy: the books that it writes to, and the copy of the process that forked this one.
  void WriteTo(Books* books, const Account* parent) {
    books_ = books;
    parent_ = parent;
  }

  // Adds a new object. An older object under the same handle must have ended without a record by now, and is closed without a
  // violation.
  std::int64_t Acquire(Object object, const faults::Record& record);
  // Adds one more reference to the handle.
  std::int64_t Retain(Object object, const faults::Record& record);
  // Gives back `count` references of `handle`. `kind` only selects the handle family; reports show the object's own kind.
  void Release(driver::Kind kind, std::uint64_t handle, std::uint64_t count, const faults::Record& record, Answer answer);
  // Releases every mapping inside [base, base + bytes).
  void ReleaseMappings(std::uint64_t base, std::uint64_t bytes, const faults::Record& record, Answer answer);
  // Ends one object without checking any rule.
  void Close(std::int64_t object, State state, const Site& site);
  // Ends every live object of `context`, because the context has ended. `owner`: the object of the context that its creator destroyed, or
  // null when somebody else holds, made or ended it.
  void Orphan(std::uint64_t context, const Site& site, const Object* owner = nullptr);
  // Ends peer access to the memory of `context`, which was destroyed or reset. The context that had access goes on and has lost nothing. In
  // peer_access.cc.
  void EndPeerAccess(std::uint64_t context, const Site& site);
  // Number of times that a context with this handle has ended.
  std::uint64_t DeathsOf(std::uint64_t context) const {
    const auto found = deaths_.find(context);
    return found == deaths_.end() ? 0 : found->second;
  }
  // Ends the live objects of `kind` in `context`. The other objects of `context` move to `heir`.
  void OrphanKind(driver::Kind kind, std::uint64_t context, std::uint64_t heir, const Site& site);
  // A query answered `handle`, so it is valid now. `bytes` is the length of the memory at an address, or 0 when unknown.
  void Borrow(driver::Family family, std::uint64_t handle, std::uint64_t bytes = 0);
  // The call `by` answered a handle that belongs to somebody else (lent.cc): a release by the program is a violation, or one that the
  // driver declines when it is not `sure`.
  void Lend(driver::Kind kind, std::uint64_t handle, const Site& by, bool sure);
  // The driver made an object but told the caller that the call failed. The handle is valid, may be released, and is never a leak.
  void AcquireUnowned(driver::Family family, std::uint64_t handle, std::uint64_t bytes, const faults::Record& record);
  // Checks a use of `handle`, or of an address inside an allocation.
  void CheckUse(driver::Family family, std::uint64_t handle, const faults::Record& record);

  // `handle` of `family` stands on the newest object of `kind` under `under`: a handle, or an address in device memory.
  void StandOn(driver::Family family, std::uint64_t handle, driver::Kind kind, std::uint64_t under);
  // The function or kernel `code` belongs to the live module or library `from`. With Kind::None it is another handle of the code `from`.
  void CodeOf(std::uint64_t code, driver::Kind kind, std::uint64_t from);
  // The variable [address, address + bytes) belongs to the live module or library `from`.
  void VariableOf(std::uint64_t address, std::uint64_t bytes, driver::Kind kind, std::uint64_t from);
  // A call that the driver declined was given `address`: a violation when it lies in a variable whose module or library is gone.
  void CheckVariable(std::uint64_t address, const faults::Record& record);
  // The destroyed object that `handle` stands on; -1 when it is not known to be destroyed.
  std::int64_t GoneUnder(driver::Family family, std::uint64_t handle);
  bool IsGone(std::int64_t object);
  // The live module or library that `code` stands on; -1 when it is gone or unknown.
  std::int64_t AliveUnderCode(std::uint64_t code);
  // Reports a call that uses something which stands on `object`, when `object` is gone.
  void ViolateFoundation(const faults::Record& record, std::uint64_t handle, std::int64_t object);
  // The driver took this descriptor over from the program. It has closed the descriptor, or will.
  void TakeOver(std::uint64_t descriptor, const faults::Record& record);
  // The descriptor was closed. When the driver had taken it over, a close by the program is a violation; a close seen by a census is not.
  void CheckTaken(std::uint64_t descriptor, const faults::Record& record, bool by_program);

  // The program gave back the host memory [base, base + bytes). What is registered there stays registered, and the driver goes on with the
  // pages that were there.
  void FreeUnderRegistrations(std::uint64_t base, std::uint64_t bytes, const faults::Record& record);
  // A call uses [address, address + bytes), or registers it `again` and is told that it is registered: a violation where the registration
  // is of memory that is gone. With `bytes` 0 only the address is known.
  void CheckRegistered(std::uint64_t address, std::uint64_t bytes, const faults::Record& record, bool again = false);

  // The program's own pool hands out [address, address + bytes), or takes the block at `address` back.
  void HandOut(std::uint64_t address, std::uint64_t bytes, const faults::Record& record);
  void TakeBack(std::uint64_t address, const faults::Record& record);
  // Checks a use of memory inside a block that was taken back and not handed out again.
  void CheckBlocks(std::uint64_t address, const faults::Record& record);

  HandleEntry* Find(driver::Family family, std::uint64_t handle);
  HandleEntry& Entry(driver::Family family, std::uint64_t handle);
  // The newest reference to the handle that is held; -1 for none.
  std::int64_t Held(driver::Family family, std::uint64_t handle);
  // The last object that had the handle, when nothing holds it any more; -1 otherwise.
  std::int64_t Ended(driver::Family family, std::uint64_t handle);
  // True when an ancestor process acquired the handle before the fork.
  bool Inherited(driver::Family family, std::uint64_t handle) const;

  AddressSpace& space() { return space_; }
  Books& books() { return *books_; }
  std::uint32_t pid() const { return pid_; }
  const Account* parent() const { return parent_; }
  // From now on graphs of this process may own memory that no recorded argument names, so an unknown address proves nothing.
  void set_graph_memory() { graph_memory_ = true; }
  // The plan refused a release or the end of a capture, or told the program that an acquisition failed (`after`). From now on a release
  // that the driver declines is marked release_refused, because the program did try.
  void set_plan_left_something() { plan_left_something_ = true; }
  // A call changed the current context and told the program that it had failed. From now on a wrong context says nothing of the program.
  void set_context_denied() { context_denied_ = plan_left_something_ = true; }
  // From now on the host's own blocks are recorded, so the ledger knows when a host address has a new owner.
  void set_host_probed() { host_probed_ = true; }
  // The newest object of the handle, or the allocation that the address lies in or last lay in; -1 when there is none.
  std::int64_t ObjectAt(driver::Kind kind, std::uint64_t handle);
  // The released allocation that `address` lies in; -1 when it is live or unknown, or when the address may have a new owner.
  // `denied`: the driver answers that it knows no memory there.
  std::int64_t DeadObjectAt(std::uint64_t address, bool denied = false) const;

 private:
  // Counts the death of the context, and answers the objects that lay in it.
  std::pmr::vector<std::int64_t> TakeChildren(std::uint64_t context);

  bool ReleasesLent(driver::Kind kind, std::uint64_t handle, const faults::Record& record, Answer answer);
  void ReleaseNothing(driver::Kind kind, HandleEntry* entry, std::uint64_t handle, const faults::Record& record, Answer answer);
  std::int64_t ReferenceToRelease(const HandleEntry& entry) const;
  std::int64_t Open(Object& object, const faults::Record& record, HandleEntry& entry);
  void Unlink(HandleEntry& entry, std::int64_t object);

  Books* books_;
  std::uint32_t pid_;
  const Account* parent_ = nullptr;
  std::uint64_t forked_at_ = 0;
  bool graph_memory_ = false;
  bool plan_left_something_ = false;
  bool context_denied_ = false;
  bool host_probed_ = false;
  struct Loan {
    Site by;
    bool sure = false;
  };
  static constexpr std::size_t kFirstHandles = 32;
  std::pmr::unordered_map<FamilyHandle, HandleEntry, FamilyHandle::Hash> handles_;
  std::unordered_map<FamilyHandle, Loan, FamilyHandle::Hash> lent_;  // handles that nobody in this process acquired
  std::pmr::unordered_map<std::uint64_t, std::pmr::vector<std::int64_t>> by_context_;
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>> by_peer_;  // peer access, by the context whose memory may be used
  std::unordered_map<std::uint64_t, std::uint64_t> deaths_;               // by context
  std::map<std::uint64_t, std::int64_t> mappings_;
  AddressSpace space_;
  AddressSpace blocks_;  // blocks of the program's own pools
  Foundations foundations_;
  struct Variable {
    std::uint64_t end = 0;
    std::int64_t under = -1;
  };
  std::map<std::uint64_t, Variable> variables_;  // by their first address
  struct Unfounded {
    std::uint64_t end = 0;
    std::int64_t object = -1;
    Site freed;
    bool reused = false;  // a part of the block was handed out again: the C library may have kept its pages
  };
  // What is registered in [from, end) is memory that is there, or nothing.
  void FoundAnew(std::uint64_t from, std::uint64_t end);
  void ReuseUnderRegistrations(const Object& block);
  std::map<std::uint64_t, Unfounded> unfounded_;  // registered host memory that is gone: by start, without overlaps
};

}  // namespace cuaudit::harness
