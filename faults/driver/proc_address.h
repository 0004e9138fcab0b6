// SPDX-License-Identifier: MIT
// proc_address.h: name, version and flags to an entry point, as a genuine driver's cuGetProcAddress resolves them.
//
//   Owns      nothing; constant tables.
//   Threads   safe everywhere; no state.
//   Errors    ProcStatus; the two entry points translate it differently (v2 answers 0 and a status, v1 answers 500).
//   Faults    makes no driver calls.
//   Source    measured on drivers 535.261 and 550.163: suffixed names and the empty name are unknown; a version above the driver's
//             picks the newest ABI; flags other than 0, 1, 2 are invalid; flags 2 picks the per-thread
//             variant; below that variant's version it answers VERSION_NOT_SUFFICIENT (580.159.04, suites/gpu/recorded).
#pragma once

#include <cstdint>
#include <string_view>

#include "faults/driver/call_id.h"

namespace cuaudit::driver {

enum class ProcStatus : std::uint8_t { Found, NotFound, VersionNotSufficient, BadFlags };

struct ProcAddress {
  ProcStatus status = ProcStatus::NotFound;
  CallId id{};  // meaningful when Found
};

[[nodiscard]] ProcAddress ResolveProcAddress(std::string_view name, int version, std::uint64_t flags) noexcept;

}  // namespace cuaudit::driver
