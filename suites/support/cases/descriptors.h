// SPDX-License-Identifier: MIT
// descriptors.h: traces of programs that export and import memory by file descriptors. Names are those of the journal: number + 1.
#pragma once

#include "suites/support/trace.h"

namespace cuaudit::testing {

inline constexpr driver::CallId kMakeDescriptors[] = {driver::CallId::MemExportToShareableHandle,
                                                      driver::CallId::MemPoolExportToShareableHandle,
                                                      driver::CallId::MemGetHandleForAddressRange};

inline constexpr std::uint64_t kImported = 0x1e;

// A program that the host probes watch.
inline Trace Watched() {
  Trace t;
  t.Host(faults::HostCall::Looking, 0);
  return t;
}

// The driver makes a descriptor for the program.
inline Step Make(Trace& t, driver::CallId call, std::uint64_t descriptor) {
  Step step = t.Call(call).In(1, 0x5);
  t.NodeContent(step, faults::kDescriptor, descriptor, 0);
  return step;
}

// The driver takes the descriptor over with the import.
inline Step Import(Trace& t, driver::CallId call, std::uint64_t descriptor) {
  Step step = t.Call(call).Out(0, kImported);
  t.NodeContent(step, faults::kDescriptor, 0, descriptor);
  return step;
}

}  // namespace cuaudit::testing
