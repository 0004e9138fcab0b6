// SPDX-License-Identifier: MIT
// Host records: heap blocks, dlopen references, mutexes, descriptors, threads and mappings. Resources acquired before the probes started
// have no record, so the release of an unknown one is no violation here.
#include <algorithm>

#include "faults/journal/record.h"
#include "harness/ledger/host_deed.h"
#include "harness/ledger/process_fold.h"

namespace cuaudit::harness {

using driver::Family;
using driver::Kind;
using faults::HostCall;

namespace {

// argument[2] of a MutexDestroy or Dlclose record is 1 when the C library had something to release. Who made it may have left no record: a
// static initialiser of a mutex, or an opening that was not watched.
bool CameUnseen(std::int64_t held, const faults::Record& record) { return record.argument[2] == 1 && held < 0; }

}  // namespace

// Descriptors, threads and mappings can be reused by calls that leave no record, so a second release proves nothing.
void ProcessFold::ReleaseHeld(Kind kind, const faults::Record& record) {
  HandleEntry* const entry = account_.Find(driver::FamilyOf(kind), record.argument[0]);
  if (entry != nullptr && entry->top < 0) entry->borrowed = false;
  if (entry != nullptr && entry->top >= 0) account_.Release(kind, record.argument[0], 1, record, Answer::Succeeded);
}

// When the C library ended the program inside `free`, the address was no block. `free` accepts a block that is older than the probes.
void ProcessFold::Finish() {
  contexts_.Finish();
  Ledger& ledger = account_.books().ledger;
  if (calls_) ++(looked_at_ ? ledger.host_seen : ledger.host_unseen);
  if (died_in_free_ != nullptr && !exited_) {
    account_.books().Violate(Rule::UnknownHandle, Kind::HostHeap, *died_in_free_, died_in_free_->argument[0], -1);
  }
}

// In a lifecycle. What was open when the audit began has no opening; of a number without any record it is not known whose it was.
void ProcessFold::ClosedTooOften(const faults::Record& record) {
  const std::int64_t ended = account_.Ended(Family::FileDescriptor, record.argument[0]);
  const bool open_at_begin = record.argument[1] == faults::kOpenAtBegin;
  if (!open_at_begin && ended < 0) return;
  const Site closed = open_at_begin ? Site() : account_.books().object(ended).released;
  account_.books().Violate(Rule::Deficit, Kind::FileDescriptor, record, record.argument[0], open_at_begin ? -1 : ended).other = closed;
}

// The C library counts all openings of a library in one handle. A close ends an opening of the same caller, so that a driver that opens a
// library of the program does not close the program's reference.
void ProcessFold::ReleaseLibrary(const faults::Record& record) {
  const std::int64_t newest = account_.Held(Family::DlopenReference, record.argument[0]);
  for (std::int64_t index = newest; index >= 0; index = account_.books().beneath[static_cast<std::size_t>(index)]) {
    if (account_.books().object(index).parent == record.argument[1]) return account_.Close(index, State::Released, SiteOf(record));
  }
  if (!CameUnseen(newest, record)) account_.Release(Kind::DlopenReference, record.argument[0], 1, record, Answer::Succeeded);
}

// A mapping that grows or shrinks where it is keeps its pages, although it is given back and mapped: argument[2] tells how many bytes stay.
void ProcessFold::HostMap(Object object, const faults::Record& record) {
  object.kind = Kind::HostMapping;
  object.bytes = record.argument[1];
  const std::int64_t index = account_.Acquire(object, record);
  GiveBack(host_mappings_.Map(object.handle, object.bytes, index), record);
}

void ProcessFold::GiveBack(const std::vector<std::int64_t>& mappings, const faults::Record& record) {
  const std::uint64_t kept = std::min(record.argument[1], record.argument[2]);
  account_.FreeUnderRegistrations(record.argument[0] + kept, record.argument[1] - kept, record);
  for (const std::int64_t gone : mappings) {
    const bool seen = account_.books().object(gone).released.record_kind != faults::RecordKind::Empty;  // exec gave it back
    if (!seen) account_.Close(gone, State::Released, SiteOf(record));
  }
}

// exec: the kernel takes back the host resources of the old image. Open descriptors survive, but which ones is not recorded.
void ProcessFold::Replaced(const faults::Record& record) {
  for (std::size_t i = first_object_; i < account_.books().ledger.objects.size(); ++i) {
    Object& object = account_.books().ledger.objects[i];
    const bool of_host = object.acquired.record_kind == faults::RecordKind::Host || object.kind == Kind::FileDescriptor;
    if (object.pid != record.pid || object.state != State::Live || !of_host) continue;
    object.state = State::Released;
    object.released = SiteOf(record);
  }
}

void ProcessFold::Host(const faults::Record& record) {
  const std::uint64_t handle = record.argument[0];
  const bool injected = (record.flags & faults::kInjected) != 0;
  if (record.call == static_cast<std::uint16_t>(HostCall::Looking)) looked_at_ = true;
  if (handle == 0) return;
  Object object;
  object.handle = handle;
  object.library_kept = (record.flags & faults::kKeptByLibrary) != 0;
  object.part_of_other = (record.flags & faults::kPartOfOther) != 0;
  object.event_or_pipe = (record.flags & faults::kEventOrPipe) != 0;
  switch (static_cast<HostCall>(record.call)) {
    case HostCall::Allocate:
      account_.set_host_probed();
      object.kind = Kind::HostHeap;
      object.bytes = record.argument[1];
      if (!injected) account_.Acquire(object, record);
      break;
    case HostCall::Deallocate: {
      const HandleEntry* const block = account_.Find(Family::HostHeap, handle);
      if (record.end == 0 && block == nullptr) died_in_free_ = &record;
      if (block != nullptr && block->top >= 0) account_.FreeUnderRegistrations(handle, account_.books().object(block->top).bytes, record);
      account_.Release(Kind::HostHeap, handle, 1, record, Answer::Succeeded);
      break;
    }
    case HostCall::Dlopen:
      object.kind = Kind::DlopenReference;
      object.parent = record.argument[1];
      if (!injected) account_.Retain(object, record);
      break;
    case HostCall::Dlclose:
      if (record.result == 0) ReleaseLibrary(record);
      break;
    case HostCall::MutexInit:
      object.kind = Kind::Mutex;
      if (!injected && record.result == 0) account_.Acquire(object, record);
      break;
    case HostCall::MutexDestroy:
      if (record.result != 0 || CameUnseen(account_.Held(Family::Mutex, handle), record)) break;
      account_.Release(Kind::Mutex, handle, 1, record, Answer::Succeeded);
      break;
    case HostCall::MutexFreed: {
      const std::int64_t known = account_.Held(Family::Mutex, handle);
      account_.books().Violate(Rule::MutexFreed, Kind::Mutex, record, handle, known);
      if (record.argument[1] == 1) account_.books().Violate(Rule::MutexLocked, Kind::Mutex, record, handle, known);
      if (known >= 0) account_.Close(known, State::Released, SiteOf(record));
      break;
    }
    case HostCall::MutexDestroyedLocked: {
      const std::int64_t known = account_.Held(Family::Mutex, handle);
      account_.books().Violate(Rule::MutexLocked, Kind::Mutex, record, handle, known);
      // The violation is reported here, so the mutex is not reported again as left behind. The C library answered EBUSY, so a retry is
      // legal.
      if (known >= 0) {
        account_.Close(known, State::Released, SiteOf(record));
        account_.books().object(known).told_alive = true;
      }
      break;
    }
    case HostCall::Map:
      HostMap(object, record);
      break;
    case HostCall::Unmap:
      GiveBack(host_mappings_.Unmap(handle, record.argument[1]), record);
      break;
    case HostCall::DescriptorClose:
      if (record.argument[1] == faults::kClosedAgain || record.argument[1] == faults::kOpenAtBegin) {
        ClosedTooOften(record);
        break;
      }
      account_.CheckTaken(handle, record, true);
      if (record.argument[1] != faults::kNotOpen) ReleaseHeld(Kind::FileDescriptor, record);
      break;
    default: {  // descriptors and threads
      const HostDeed deed = DeedOf(static_cast<HostCall>(record.call));
      object.kind = deed.acquires;
      if (static_cast<HostCall>(record.call) == HostCall::DescriptorFound && IsToldDescriptor(handle)) break;
      if (deed.releases == Kind::FileDescriptor) account_.CheckTaken(handle, record, false);
      if (deed.acquires != Kind::None) account_.Acquire(object, record);
      if (deed.releases != Kind::None) ReleaseHeld(deed.releases, record);
    }
  }
}

}  // namespace cuaudit::harness
