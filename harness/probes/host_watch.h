// SPDX-License-Identifier: MIT
// host_watch.h: the host drop-in, where it is in this process: linked (CMake: cuaudit::host) or preloaded.
//
//   Threads   safe.
//   Errors    null: it is not here, or was built from other headers.
//   Faults    makes no driver calls.
//   Source    ours; faults/probes/host_watch.h says what its functions do.
#pragma once

#include <cstdint>

#include "faults/probes/host_watch.h"

namespace cuaudit::harness {

using faults::HostBlind;
using faults::HostNet;
using faults::HostWatchCalls;

// `digest`: driver::TableDigest() of this build.
const HostWatchCalls* FindHostWatch(std::uint64_t digest) noexcept;

}  // namespace cuaudit::harness
