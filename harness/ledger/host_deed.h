// SPDX-License-Identifier: MIT
// host_deed.h: what a host call does when it succeeds: it acquires an object of a kind, releases one, or neither. IsHost tells which kinds
// are of the host.
#pragma once

#include <cstddef>

#include "faults/driver/kinds.h"
#include "faults/journal/record.h"

namespace cuaudit::harness {

struct HostDeed {
  driver::Kind acquires = driver::Kind::None;
  driver::Kind releases = driver::Kind::None;
};

constexpr HostDeed DeedOf(faults::HostCall call) {
  using driver::Kind;
  using faults::HostCall;
  switch (call) {
    case HostCall::Allocate:
      return {.acquires = Kind::HostHeap};
    case HostCall::Deallocate:
      return {.releases = Kind::HostHeap};
    case HostCall::Dlopen:
      return {.acquires = Kind::DlopenReference};
    case HostCall::Dlclose:
      return {.releases = Kind::DlopenReference};
    case HostCall::MutexInit:
      return {.acquires = Kind::Mutex};
    case HostCall::MutexDestroy:
    case HostCall::MutexFreed:
    case HostCall::MutexDestroyedLocked:  // answered EBUSY; a program that ignores this does not try again
      return {.releases = Kind::Mutex};
    case HostCall::DescriptorOpen:
    case HostCall::DescriptorSocket:
    case HostCall::DescriptorPipe:
    case HostCall::DescriptorDup:
    case HostCall::DescriptorEvent:
    case HostCall::DescriptorPoll:
    case HostCall::DescriptorTimer:
    case HostCall::DescriptorMemory:
    case HostCall::DescriptorWatch:
    case HostCall::DescriptorSignal:
    case HostCall::DescriptorStream:
    case HostCall::DescriptorDirectory:
    case HostCall::DescriptorReceived:
    case HostCall::DescriptorFound:
      return {.acquires = Kind::FileDescriptor};
    case HostCall::DescriptorClose:
    case HostCall::DescriptorGone:
      return {.releases = Kind::FileDescriptor};
    case HostCall::ThreadCreate:
      return {.acquires = Kind::Thread};
    case HostCall::ThreadJoin:
    case HostCall::ThreadDetach:
    case HostCall::ThreadDetachSelf:
      return {.releases = Kind::Thread};
    case HostCall::Map:
      return {.acquires = Kind::HostMapping};
    case HostCall::Unmap:
      return {.releases = Kind::HostMapping};
    case HostCall::Reading:
    case HostCall::Looking:
      break;
  }
  return {};
}

// True for a kind that a call of the host acquires.
constexpr bool IsHost(driver::Kind kind) {
  for (std::size_t i = 0; kind != driver::Kind::None && i < faults::kHostCallCount; ++i) {
    if (DeedOf(static_cast<faults::HostCall>(i)).acquires == kind) return true;
  }
  return false;
}

}  // namespace cuaudit::harness
