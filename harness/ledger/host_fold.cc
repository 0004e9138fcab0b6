// SPDX-License-Identifier: MIT
// Host records: heap blocks, dlopen references and mutexes. What was acquired before the probe looked is unknown to it, so releasing
// something unknown is silent here.
#include "harness/ledger/process_fold.h"

namespace cuaudit::harness {

using driver::Family;
using driver::Kind;
using faults::HostCall;

void ProcessFold::Host(const faults::Record& record) {
  const std::uint64_t handle = record.argument[0];
  const bool injected = (record.flags & faults::kInjected) != 0;
  account_.set_host_probed();
  if (handle == 0) return;
  Object object;
  object.handle = handle;
  switch (static_cast<HostCall>(record.call)) {
    case HostCall::Allocate:
      object.kind = Kind::HostHeap;
      object.bytes = record.argument[1];
      if (!injected) account_.Acquire(object, record);
      break;
    case HostCall::Deallocate:
      account_.Release(Kind::HostHeap, handle, 1, record, Outcome::Succeeded);
      break;
    case HostCall::Dlopen:
      object.kind = Kind::DlopenReference;
      if (!injected) account_.Retain(object, record);
      break;
    case HostCall::Dlclose:
      if (record.result == 0) account_.Release(Kind::DlopenReference, handle, 1, record, Outcome::Succeeded);
      break;
    case HostCall::MutexInit:
      object.kind = Kind::Mutex;
      if (!injected && record.result == 0) account_.Acquire(object, record);
      break;
    case HostCall::MutexDestroy:
      if (record.result == 0) account_.Release(Kind::Mutex, handle, 1, record, Outcome::Succeeded);
      break;
    case HostCall::MutexFreed: {
      const HandleEntry* entry = account_.Find(Family::Mutex, handle);
      const std::int64_t known = entry == nullptr ? -1 : entry->top;
      account_.books().Violate(Rule::MutexFreed, Kind::Mutex, record, handle, known);
      if (record.argument[1] == 1) account_.books().Violate(Rule::MutexLocked, Kind::Mutex, record, handle, known);
      if (known >= 0) account_.Close(known, State::Released, SiteOf(record));
      break;
    }
    case HostCall::MutexDestroyedLocked: {
      const HandleEntry* entry = account_.Find(Family::Mutex, handle);
      account_.books().Violate(Rule::MutexLocked, Kind::Mutex, record, handle, entry == nullptr ? -1 : entry->top);
      break;
    }
  }
}

}  // namespace cuaudit::harness
