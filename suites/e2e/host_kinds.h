// SPDX-License-Identifier: MIT
// host_kinds.h: the kinds of resources that a program takes from the host and not from the driver.
//
//   Owns      nothing.
//   Threads   constants.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours. kinds_test.cc holds this list and its own against the table of all kinds; host_ways_test.cc loses each of these.
#pragma once

namespace cuaudit::e2e {

inline constexpr const char* kHostKinds[] = {"host_heap", "dlopen_reference", "mutex", "file_descriptor", "thread", "host_mapping"};

}  // namespace cuaudit::e2e
