// SPDX-License-Identifier: MIT
// host_kinds.h: the kinds of resource that a program takes from the host and not from the driver.
//
// kinds_test.cc compares this list and its own with the table of all kinds; host_ways_test.cc loses one object of each kind.
#pragma once

namespace cuaudit::e2e {

inline constexpr const char* kHostKinds[] = {"host_heap", "dlopen_reference", "mutex", "file_descriptor", "thread", "host_mapping"};

}  // namespace cuaudit::e2e
