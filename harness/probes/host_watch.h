// SPDX-License-Identifier: MIT
// host_watch.h: finds the host drop-in in this process, which is there when linked (CMake: cuaudit::host) or preloaded.
//
//   Errors    null: the drop-in is not in the process, or was built from other headers.
//   Source    faults/probes/host_watch.h describes the functions.
#pragma once

#include <cstdint>

#include "faults/probes/host_watch.h"

namespace cuaudit::harness {

using faults::HostBlind;
using faults::HostNet;
using faults::HostWatchCalls;

// `digest` is driver::TableDigest() of this build.
const HostWatchCalls* FindHostWatch(std::uint64_t digest) noexcept;

}  // namespace cuaudit::harness
