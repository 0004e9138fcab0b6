// SPDX-License-Identifier: MIT
// node_addresses.h: which device addresses a graph node is given, written as Argument records behind the call that adds it: by name, or by
// being made on a stream under capture.
//
//   Threads   safe.
//   Faults    RecordAddresses calls FuncGetParamInfo and KernelGetParamInfo, past the plan: which arguments of a kernel can be addresses.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "node_addresses.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cstdint>

#include "faults/driver/driver_ref.h"
#include "faults/journal/journal.h"
#include "faults/shim/call_record.h"

namespace cuaudit::faults {

// Call it after a call that succeeded and has a record. `launches`: record also the arguments of a kernel launch (kLaunchWords).
void RecordAddresses(driver::DriverRef next, Journal* journal, const Passage& passage, bool launches) noexcept;

// The graph that the call is to make a node of, 0: it makes none of a graph.
std::uint64_t ChildOf(const Passage& passage) noexcept;

}  // namespace cuaudit::faults
