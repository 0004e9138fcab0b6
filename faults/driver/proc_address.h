// SPDX-License-Identifier: MIT
// proc_address.h: resolves name, version and flags to an entry point, as cuGetProcAddress of a genuine driver does.
//
// Drivers 535.261 and 550.163 were seen to behave as follows. Names with a version suffix and the empty name are unknown. A version
// above the driver's gives the newest ABI. Flags other than 0, 1 and 2 are invalid. Flags 2 gives the per-thread variant; a version
// below that variant's answers VERSION_NOT_SUFFICIENT (also seen on 580.159.04).
#pragma once

#include <cstdint>
#include <string_view>

#include "faults/driver/call_id.h"

namespace cuaudit::driver {

// cuGetProcAddress_v2 reports NotFound and VersionNotSufficient as CUDA_SUCCESS with a status, the old cuGetProcAddress as 500.
enum class ProcStatus : std::uint8_t { Found, NotFound, VersionNotSufficient, BadFlags };

struct ProcAddress {
  ProcStatus status = ProcStatus::NotFound;
  CallId id{};  // meaningful when Found
};

[[nodiscard]] ProcAddress ResolveProcAddress(std::string_view name, int version, std::uint64_t flags) noexcept;

}  // namespace cuaudit::driver
