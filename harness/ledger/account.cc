// SPDX-License-Identifier: MIT
#include "harness/ledger/account.h"

#include <algorithm>
#include <utility>

#include "faults/driver/result.h"
#include "harness/ledger/host_deed.h"

namespace cuaudit::harness {
namespace {

using driver::DiesWith;
using driver::Family;
using driver::Kind;

// Memory that a device address or a unified host address can point into.
bool HasRange(Kind kind) {
  const Family family = driver::FamilyOf(kind);
  return family == Family::Pointer || family == Family::HostPointer || family == Family::HostRegistration || family == Family::Mapping;
}

// A host address stays valid after its registration has ended. Addresses of other kinds do not.
bool StaleAfterRelease(Kind kind) { return HasRange(kind) && kind != Kind::HostRegistration; }

// Answers of a driver to a release in the wrong context of an object that exists. For an object that does not exist, see SaysUnknown.
bool SaysWrongContext(std::int32_t result) {
  return result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_VALUE ||
         result == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// False for a driver call that ends the object although it releases another kind, as the end of a context ends its stack entries. The
// program then did not try the refused release again.
bool ReleasesKind(const Site& site, Kind kind) {
  if (site.record_kind != faults::RecordKind::Call) return true;
  return driver::FamilyOf(driver::EffectOf(BaseOf(site)).kind) == driver::FamilyOf(kind);
}

// Neither cuIpcCloseMemHandle of memory that this process allocated, nor cuMemFree of memory that another one did: a driver declines
// both (ipc.close_bad, ipc.foreign), so such a call was no try at the release that is owed.
bool ReleasesOtherMemory(Kind released, Kind kind) { return (released == Kind::IpcMemory) != (kind == Kind::IpcMemory); }

// The call since which an object is gone. Empty when the object is alive, or when nobody saw how it ended.
Site EndOf(const Ledger& ledger, std::int64_t index) {
  const Object& gone = ledger.objects[static_cast<std::size_t>(index)];
  if (gone.state != State::Released && gone.state != State::Orphaned) return {};
  Site end = gone.released;
  if (!IsReferenceCounted(gone.kind)) return end;
  for (const Object& other : ledger.objects) {
    const bool same = other.kind == gone.kind && other.handle == gone.handle && other.pid == gone.pid;
    const bool ended = other.state == State::Released || other.state == State::Orphaned;  // else `released` only tried to
    if (same && ended && other.released.begin > end.begin) end = other.released;
  }
  return end;
}

}  // namespace

Violation& Books::Violate(Rule rule, Kind kind, const faults::Record& record, std::uint64_t handle, std::int64_t object) {
  const bool is_gone = object >= 0 && (rule == Rule::DoubleRelease || rule == Rule::UseAfterRelease);
  return ledger.violations.emplace_back(
      Violation{rule, kind, record.pid, handle, SiteOf(record), object, is_gone ? EndOf(ledger, object) : Site{}});
}

HandleEntry* Account::Find(Family family, std::uint64_t handle) {
  const auto found = handles_.find({family, handle});
  return found == handles_.end() ? nullptr : &found->second;
}

HandleEntry& Account::Entry(Family family, std::uint64_t handle) { return handles_[{family, handle}]; }

std::int64_t Account::Held(Family family, std::uint64_t handle) {
  const HandleEntry* const entry = Find(family, handle);
  return entry == nullptr ? -1 : entry->top;
}

std::int64_t Account::Ended(Family family, std::uint64_t handle) {
  const HandleEntry* const entry = Find(family, handle);
  return entry == nullptr || entry->top >= 0 ? -1 : entry->last;
}

bool Account::Inherited(Family family, std::uint64_t handle) const {
  std::uint64_t before = forked_at_;
  for (const Account* account = parent_; account != nullptr; account = account->parent_) {
    const auto found = account->handles_.find({family, handle});
    if (found != account->handles_.end()) {
      if (found->second.borrowed) return true;
      // A handle value with an older generation had an object before the newest one, so looking at the newest object is enough.
      const std::int64_t last = found->second.last;
      if (last >= 0 && (books_->object(last).acquired.begin < before || books_->object(last).generation > 0)) return true;
    }
    before = account->forked_at_;
  }
  return false;
}

std::int64_t Account::Open(Object& object, const faults::Record& record, HandleEntry& entry) {
  const auto index = static_cast<std::int64_t>(books_->ledger.objects.size());
  object.pid = pid_;
  object.tid = record.tid;
  object.generation = entry.generation++;
  object.cycle = record.cycle;
  object.acquired = SiteOf(record);
  if (driver::DiesWithOf(object.kind) == DiesWith::Context) {
    if (object.context == 0) object.context = record.context;
    if (object.context != 0) by_context_[object.context].push_back(index);
  }
  if (object.kind == Kind::PeerAccess) by_peer_[object.parent].push_back(index);
  foundations_.Put(driver::FamilyOf(object.kind), object.handle, -1);
  books_->beneath.push_back(entry.top);
  entry.top = index;
  entry.last = index;
  entry.borrowed = false;
  entry.denied_releases.BeginAnew();
  if (!lent_.empty()) lent_.erase({driver::FamilyOf(object.kind), object.handle});
  if (object.kind == Kind::Mapping) mappings_[object.handle] = index;
  if (HasRange(object.kind)) {
    // The length of imported memory is unknown. Dead memory that lay there before has been replaced.
    if (object.bytes == 0) space_.ForgetDead(object.handle, 0);
    space_.Insert(object.handle, object.bytes, index);
    // Newly acquired memory holds none of the pool blocks that lay at these addresses before.
    if (StaleAfterRelease(object.kind) && object.bytes != 0) blocks_.Forget(object.handle, object.bytes);
    if (object.bytes == 0) blocks_.ForgetDead(object.handle, 0);
  }
  if (object.kind == Kind::HostHeap) ReuseUnderRegistrations(object);
  if (object.kind == Kind::HostHeap || object.kind == Kind::AddressReservation) {
    space_.Forget(object.handle, object.bytes);
    blocks_.ForgetDead(object.handle, std::max<std::uint64_t>(object.bytes, 1));
  }
  books_->ledger.objects.push_back(object);
  return index;
}

std::int64_t Account::Acquire(Object object, const faults::Record& record) {
  HandleEntry& entry = Entry(driver::FamilyOf(object.kind), object.handle);
  while (entry.top >= 0) Close(entry.top, State::Released, Site{.begin = record.begin});
  entry.graph_references = 0;
  entry.denied = 0;
  return Open(object, record, entry);
}

std::int64_t Account::Retain(Object object, const faults::Record& record) {
  return Open(object, record, Entry(driver::FamilyOf(object.kind), object.handle));
}

void Account::Unlink(HandleEntry& entry, std::int64_t object) {
  if (entry.top == object) {
    entry.top = books_->beneath[static_cast<std::size_t>(object)];
    return;
  }
  for (std::int64_t above = entry.top; above >= 0; above = books_->beneath[static_cast<std::size_t>(above)]) {
    if (books_->beneath[static_cast<std::size_t>(above)] == object) {
      books_->beneath[static_cast<std::size_t>(above)] = books_->beneath[static_cast<std::size_t>(object)];
      return;
    }
  }
}

void Account::Close(std::int64_t index, State state, const Site& site) {
  Object& object = books_->object(index);
  const bool seen = site.record_kind != faults::RecordKind::Empty;
  if (object.state == State::Live && state == State::Orphaned) object.declined = object.released;
  if (object.state == State::ReleaseRefused && state == State::Released && seen) object.retried = object.released;
  if (!ReleasesKind(site, object.kind)) object.retried = Site{};
  object.state = state;
  object.released = site;
  if (HandleEntry* entry = Find(driver::FamilyOf(object.kind), object.handle)) Unlink(*entry, index);
  if (object.kind == Kind::Mapping) mappings_.erase(object.handle);
  if (object.kind == Kind::HostRegistration) FoundAnew(object.handle, object.handle + object.bytes);
  if (object.kind == Kind::Module || object.kind == Kind::Library) space_.CountDeath();
  if (StaleAfterRelease(object.kind)) {
    space_.Kill(object.handle, object.bytes, index);
  } else if (HasRange(object.kind)) {
    space_.Forget(object.handle, object.bytes);
  }
}

// A reference whose release was refused is released last. Otherwise a program that does not retry would be blamed for the reference that
// the plan left behind.
std::int64_t Account::ReferenceToRelease(const HandleEntry& entry) const {
  for (std::int64_t index = entry.top; index >= 0; index = books_->beneath[static_cast<std::size_t>(index)]) {
    if (books_->object(index).state == State::Live) return index;
  }
  return entry.top;
}

// Answers true when the handle is known to belong to somebody else.
bool Account::ReleasesLent(Kind kind, std::uint64_t handle, const faults::Record& record, Answer answer) {
  const auto loan = lent_.find({driver::FamilyOf(kind), handle});
  if (loan == lent_.end() || answer == Answer::Refused || answer == Answer::TornDown) return false;
  if (!loan->second.sure && (answer != Answer::Failed || Inherited(driver::FamilyOf(kind), handle))) return false;
  books_->Violate(Rule::LentReleased, kind, record, handle, -1).other = loan->second.by;
  return true;
}

void Account::ReleaseNothing(Kind kind, HandleEntry* entry, std::uint64_t handle, const faults::Record& record, Answer answer) {
  if (!lent_.empty() && ReleasesLent(kind, handle, record, answer)) return;
  if (entry != nullptr && entry->borrowed) return;
  if (entry == nullptr || entry->last < 0) {
    if (IsHost(kind) || Inherited(driver::FamilyOf(kind), handle)) return;
    if (graph_memory_ && driver::FamilyOf(kind) == Family::Pointer) return;
    // When the driver accepts an unknown handle, the program got the handle by a way without records, for example from the CUDA runtime.
    if (answer == Answer::Unfinished || (answer == Answer::Failed && driver::SaysUnknown(static_cast<CUresult>(record.result)))) {
      // The program gave a block of malloc to cuMemFreeHost.
      const std::int64_t block = kind == Kind::PinnedMemory ? Held(Family::HostHeap, handle) : -1;
      books_->Violate(Rule::UnknownHandle, kind, record, handle, block);
      if (block >= 0) books_->object(block).released = SiteOf(record);
    }
    return;
  }
  Object& last = books_->object(entry->last);
  if (last.state == State::Orphaned || last.state == State::ReleaseRefused) {
    const bool too_late = last.state == State::Orphaned;
    if (too_late) books_->Violate(Rule::UseAfterRelease, last.kind, record, handle, entry->last);
    if (!too_late && !Releases(answer)) return;
    if (!Releases(answer) && ReleasesOtherMemory(kind, last.kind)) return;
    last.state = State::Released;  // a release that came too late was not forgotten, whatever is answered
    last.released = SiteOf(record);
    last.told_alive = answer != Answer::Succeeded;
    return;
  }
  if (last.told_alive) {
    if (answer != Answer::Succeeded) return;
    last.told_alive = false;  // accepted (texture.destroy_twice, outlives.released_external_memory): now the program knows
    (void)entry->denied_releases.Excuse(record, true, last.released);
    return;
  }
  if (entry->denied != 0) {
    if (Releases(answer)) --entry->denied;
    return;
  }
  const Rule rule = last.kind == Kind::UserObject ? Rule::OverReleasedReference : Rule::DoubleRelease;
  books_->Violate(rule, last.kind, record, handle, entry->last).believed =
      entry->denied_releases.Excuse(record, answer == Answer::Succeeded, last.released);
}

void Account::Release(Kind kind, std::uint64_t handle, std::uint64_t count, const faults::Record& record, Answer answer) {
  if (handle == 0) return;  // cuMemFree(0), free(NULL) and the default stream
  HandleEntry* entry = Find(driver::FamilyOf(kind), handle);
  if (entry == nullptr || entry->top < 0) {
    ReleaseNothing(kind, entry, handle, record, answer);
    return;
  }
  if (!Releases(answer)) {
    Object& object = books_->object(ReferenceToRelease(*entry));
    if (object.state == State::Live && answer == Answer::Failed) object.released = SiteOf(record);  // the driver declined
    if (ReleasesOtherMemory(kind, object.kind)) return;
    if (answer == Answer::Refused) {
      object.state = State::ReleaseRefused;
      object.released = SiteOf(record);
    } else if (!context_denied_ && object.context != 0 && object.context != record.context && SaysWrongContext(record.result)) {
      books_->Violate(Rule::WrongContext, object.kind, record, handle, entry->top);
    } else if (plan_left_something_ && object.state == State::Live) {
      object.state = State::ReleaseRefused;
      object.released = SiteOf(record);
    }
    return;
  }
  while (count > 0 && entry->top >= 0) {
    const std::int64_t index = ReferenceToRelease(*entry);
    Object& object = books_->object(index);
    const std::uint64_t given = std::min(count, object.references);
    count -= given;
    object.references -= given;
    if (object.references != 0) continue;
    const Site first = FirstTry(object, record);
    Close(index, State::Released, SiteOf(record));
    object.told_alive = object.release_denied = answer == Answer::After;
    if (object.told_alive) entry->denied_releases.Add(first);
  }
  if (count > 0 && !books_->object(entry->last).told_alive) books_->Violate(Rule::OverReleasedReference, kind, record, handle, entry->last);
}

void Account::ReleaseMappings(std::uint64_t base, std::uint64_t bytes, const faults::Record& record, Answer answer) {
  std::vector<std::uint64_t> inside;
  for (auto it = mappings_.lower_bound(base); it != mappings_.end() && it->first - base < bytes; ++it) inside.push_back(it->first);
  for (const std::uint64_t handle : inside) Release(Kind::Mapping, handle, 1, record, answer);
  if (inside.empty()) Release(Kind::Mapping, base, 1, record, answer);
}

std::pmr::vector<std::int64_t> Account::TakeChildren(std::uint64_t context) {
  ++deaths_[context];
  const auto found = by_context_.find(context);
  if (context == 0 || found == by_context_.end()) return {};
  std::pmr::vector<std::int64_t> children = std::move(found->second);
  by_context_.erase(found);
  return children;
}

void Account::Orphan(std::uint64_t context, const Site& site, const Object* owner) {
  for (const std::int64_t index : TakeChildren(context)) {
    books_->object(index).own_context = owner != nullptr && owner->cycle == books_->object(index).cycle;
    const State state = books_->object(index).state;
    if (state == State::Live) Close(index, State::Orphaned, site);
    // The program tried to release the object, so the end of its context is not held against the program.
    if (state == State::ReleaseRefused) Close(index, State::ReleaseRefused, books_->object(index).released);
    books_->object(index).died_with_context = state == State::ReleaseRefused;
  }
}

void Account::OrphanKind(Kind kind, std::uint64_t context, std::uint64_t heir, const Site& site) {
  for (const std::int64_t index : TakeChildren(context)) {
    Object& object = books_->object(index);
    if (object.kind == kind && object.state == State::Live) {
      Close(index, State::Orphaned, site);
    } else if (heir != 0) {
      object.context = heir;
      by_context_[heir].push_back(index);
    }
  }
}

void Account::Borrow(Family family, std::uint64_t handle, std::uint64_t bytes) {
  if (family == Family::None || handle == 0) return;
  if (family == Family::Pointer) {
    // A query about memory that the ledger follows says nothing about the pool blocks inside that memory.
    if (space_.ObjectAt(handle) < 0 || space_.DeadObjectAt(handle) >= 0) blocks_.ForgetDead(handle, bytes);
    space_.ForgetDead(handle, bytes);
  }
  HandleEntry& entry = Entry(family, handle);
  if (entry.top < 0) entry.borrowed = true;
}

void Account::Lend(Kind kind, std::uint64_t handle, const Site& by, bool sure) {
  const Family family = driver::FamilyOf(kind);
  const HandleEntry* const entry = Find(family, handle);
  if (entry != nullptr && (entry->top >= 0 || (!sure && entry->last >= 0))) return;  // the program's own, or it once was
  lent_.try_emplace({family, handle}, Loan{by, sure});
}

void Account::AcquireUnowned(Family family, std::uint64_t handle, std::uint64_t bytes, const faults::Record& record) {
  if (family == Family::None || handle == 0) return;
  HandleEntry& entry = Entry(family, handle);
  entry.borrowed = true;
  if (!lent_.empty()) lent_.erase({family, handle});
  while (entry.top >= 0) Close(entry.top, State::Released, Site{.begin = record.begin});
  if (family == Family::Pointer || family == Family::HostPointer || family == Family::Mapping) space_.ForgetDead(handle, bytes);
}

std::int64_t Account::ObjectAt(Kind kind, std::uint64_t handle) {
  if (HasRange(kind)) return space_.ObjectAt(handle);
  const HandleEntry* entry = Find(driver::FamilyOf(kind), handle);
  if (entry == nullptr) return -1;
  return entry->top >= 0 ? entry->top : entry->last;
}

std::int64_t Account::DeadObjectAt(std::uint64_t address, bool denied) const {
  const std::int64_t dead = space_.DeadObjectAt(address);
  // Pinned memory returns to the host, and a host allocation without a record may now lie at the same address.
  if (dead >= 0 && books_->object(dead).told_alive) return -1;
  if (dead >= 0 && !host_probed_ && !denied && driver::FamilyOf(books_->object(dead).kind) == Family::HostPointer) return -1;
  return dead;
}

void Account::CheckUse(Family family, std::uint64_t handle, const faults::Record& record) {
  // A user object lives as long as graphs hold it. Its references have rules of their own.
  if (family == Family::None || family == Family::UserObject || handle == 0) return;
  if (family == Family::Pointer) {
    const std::int64_t dead = DeadObjectAt(handle, SaysNoSuchMemory(record));
    if (dead < 0) return CheckBlocks(handle, record);
    const Object& gone = books_->object(dead);
    books_->Violate(Rule::UseAfterRelease, gone.kind, record, handle, dead).believed =
        Entry(driver::FamilyOf(gone.kind), gone.handle).denied_releases.ExcuseUse();
    return;
  }
  // Only launches read the memory of a texture or surface object. A query of its description does no harm.
  const bool is_view = family == Family::TextureObject || family == Family::SurfaceObject;
  const std::int64_t gone = is_view ? -1 : GoneUnder(family, handle);
  if (gone >= 0) return ViolateFoundation(record, handle, gone);
  HandleEntry* const entry = Find(family, handle);
  if (entry == nullptr || entry->top >= 0 || entry->last < 0 || entry->borrowed) return;
  const Object& last = books_->object(entry->last);
  if (last.state == State::ReleaseRefused || last.told_alive || entry->denied != 0) return;
  books_->Violate(Rule::UseAfterRelease, last.kind, record, handle, entry->last).believed = entry->denied_releases.ExcuseUse();
}

void Account::HandOut(std::uint64_t address, std::uint64_t bytes, const faults::Record& record) {
  Object block = {.kind = Kind::Block, .handle = address, .bytes = bytes};
  const std::int64_t before = blocks_.LiveObjectIn(address, bytes);
  if (before >= 0) books_->Violate(Rule::HandedOutTwice, Kind::Block, record, address, before);
  const std::int64_t index = Retain(block, record);  // an older block that is still out stays a leak
  blocks_.Insert(address, bytes, index);
}

void Account::TakeBack(std::uint64_t address, const faults::Record& record) {
  const std::int64_t index = Held(Family::Block, address);
  Release(Kind::Block, address, 1, record, Answer::Succeeded);
  if (index >= 0) blocks_.Kill(address, books_->object(index).bytes, index);
}

void Account::CheckBlocks(std::uint64_t address, const faults::Record& record) {
  const std::int64_t dead = blocks_.DeadObjectAt(address);
  if (dead >= 0) books_->Violate(Rule::UseAfterRelease, Kind::Block, record, address, dead);
}

}  // namespace cuaudit::harness
