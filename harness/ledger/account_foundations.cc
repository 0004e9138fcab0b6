// SPDX-License-Identifier: MIT
// Which object stands on which, and descriptors that the driver took over. This part of Account relates two objects to each other.
#include <algorithm>

#include "harness/ledger/account.h"

namespace cuaudit::harness {

using driver::Family;
using driver::Kind;

bool Account::IsGone(std::int64_t index) {
  const Object& object = books_->object(index);
  // Closed without a site: another object took its handle, and nobody saw how it ended.
  return object.state == State::Released && !object.told_alive && object.released.record_kind == faults::RecordKind::Call;
}

// A foundation stands on nothing itself: code and views stand on objects, and objects stand on nothing.
void Account::StandOn(Family family, std::uint64_t handle, Kind kind, std::uint64_t under) {
  std::int64_t object = -1;
  if (driver::FamilyOf(kind) == Family::Pointer) {
    if (space_.DeadObjectAt(under) < 0) object = space_.ObjectAt(under);
  } else {
    object = Held(driver::FamilyOf(kind), under);
    // A level of a mipmapped array is no object of its own: what stands on the level stands on the whole array.
    if (object < 0) object = foundations_.Of(driver::FamilyOf(kind), under);
  }
  foundations_.Put(family, handle, object);
}

void Account::CodeOf(std::uint64_t code, Kind kind, std::uint64_t from) {
  if (kind == Kind::None) {
    foundations_.Put(kCode, code, foundations_.Of(kCode, from));
    return;
  }
  StandOn(kCode, code, kind, from);
}

void Account::VariableOf(std::uint64_t address, std::uint64_t bytes, Kind kind, std::uint64_t from) {
  if (address == 0) return;  // the program asked for the size alone
  const std::int64_t under = Held(driver::FamilyOf(kind), from);
  const std::uint64_t end = address + std::max<std::uint64_t>(bytes, 1);  // it may have asked for the address alone
  auto at = RangeFrom(variables_, address);
  while (at != variables_.end() && at->first < end) at = variables_.erase(at);
  if (under >= 0) variables_[address] = {end, under};
}

void Account::CheckVariable(std::uint64_t address, const faults::Record& record) {
  const auto variable = RangeFrom(variables_, address);
  if (variable == variables_.end() || variable->first > address) return;
  const bool reused = space_.ObjectAt(address) >= 0;
  if (!reused && IsGone(variable->second.under)) ViolateFoundation(record, address, variable->second.under);
}

std::int64_t Account::GoneUnder(Family family, std::uint64_t handle) {
  const std::int64_t under = foundations_.Of(family, handle);
  return under >= 0 && IsGone(under) ? under : -1;
}

std::int64_t Account::AliveUnderCode(std::uint64_t code) {
  const std::int64_t under = foundations_.Of(kCode, code);
  return under < 0 || IsGone(under) ? -1 : under;
}

void Account::ViolateFoundation(const faults::Record& record, std::uint64_t handle, std::int64_t index) {
  const Object& gone = books_->object(index);
  books_->Violate(Rule::DestroyedUnderUser, gone.kind, record, handle, index).other = gone.released;
}

void Account::FreeUnderRegistrations(std::uint64_t base, std::uint64_t bytes, const faults::Record& record) {
  const std::uint64_t end = base + bytes;
  for (std::uint64_t from = base; from < end;) {
    const std::int64_t index = space_.LiveObjectIn(from, end - from);
    if (index < 0) return;
    const Object& object = books_->object(index);
    const std::uint64_t begin = std::max(from, object.handle);
    from = object.handle + std::max<std::uint64_t>(object.bytes, 1);
    if (from <= begin) return;  // it wraps around
    if (object.kind != Kind::HostRegistration) continue;
    const std::uint64_t gone = std::min(end, from);
    const auto known = RangeFrom(unfounded_, begin);
    const bool already = known != unfounded_.end() && known->first <= begin && known->second.end >= gone && !known->second.reused;
    if (already) continue;
    FoundAnew(begin, gone);
    unfounded_[begin] = {gone, index, SiteOf(record)};
  }
}

void Account::FoundAnew(std::uint64_t from, std::uint64_t end) {
  for (auto at = RangeFrom(unfounded_, from); at != unfounded_.end() && at->first < end;) {
    const std::uint64_t begin = at->first;
    const Unfounded one = at->second;
    at = unfounded_.erase(at);
    if (begin < from) unfounded_[begin] = {from, one.object, one.freed, one.reused};
    if (one.end > end) unfounded_[end] = one;
  }
}

void Account::ReuseUnderRegistrations(const Object& block) {
  for (auto at = RangeFrom(unfounded_, block.handle); at != unfounded_.end() && at->first < block.handle + block.bytes; ++at) {
    Unfounded& one = at->second;
    one.reused = one.reused || one.freed.call == static_cast<std::uint16_t>(faults::HostCall::Deallocate);
  }
}

void Account::CheckRegistered(std::uint64_t address, std::uint64_t bytes, const faults::Record& record, bool again) {
  const std::uint64_t end = address + std::max<std::uint64_t>(bytes, 1);
  for (auto at = RangeFrom(unfounded_, address); at != unfounded_.end() && at->first < end; ++at) {
    const Unfounded& one = at->second;
    const Object& object = books_->object(one.object);
    if (one.reused && !again) continue;
    if (object.state != State::Live) continue;  // the program could not end the registration, and has no other way than to go on
    books_->Violate(Rule::DestroyedUnderUser, Kind::HostRegistration, record, object.handle, one.object).other = one.freed;
    return;
  }
}

void Account::TakeOver(std::uint64_t descriptor, const faults::Record& record) {
  const HandleEntry* entry = Find(Family::FileDescriptor, descriptor);
  const std::int64_t ended = Ended(Family::FileDescriptor, descriptor);
  const Object* const before = ended < 0 ? nullptr : &books_->object(ended);
  const bool taken_before =
      before != nullptr && before->released.record_kind == faults::RecordKind::Call && before->released.begin < record.begin;
  if (entry == nullptr || taken_before) {  // nobody saw it opened: a graphics driver or a system call made it
    Object unseen = {.kind = Kind::FileDescriptor, .handle = descriptor};
    Acquire(unseen, record);
    entry = Find(Family::FileDescriptor, descriptor);
  }
  if (entry->last < 0) return;
  const std::int64_t index = entry->last;
  if (entry->top >= 0) {
    Close(index, State::Released, SiteOf(record));
  } else if (books_->object(index).released.begin < record.begin) {
    return;  // the program closed it before; the number means something else now
  }
  Object& object = books_->object(index);
  object.released = SiteOf(record);  // the driver may have closed it inside the call
  object.told_alive = object.release_denied = AnswerOf(record) == Answer::After;
}

void Account::CheckTaken(std::uint64_t descriptor, const faults::Record& record, bool by_program) {
  const std::int64_t index = Ended(Family::FileDescriptor, descriptor);
  if (index < 0) return;
  Object& object = books_->object(index);
  if (object.state != State::Released || object.released.record_kind != faults::RecordKind::Call || object.told_alive) return;
  if (by_program) {
    books_->Violate(Rule::ClosedAfterImport, Kind::FileDescriptor, record, descriptor, index).other = object.released;
  }
  object.told_alive = true;  // reported once; later the number may belong to another file
}

}  // namespace cuaudit::harness
