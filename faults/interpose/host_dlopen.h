// SPDX-License-Identifier: MIT
// host_dlopen.h: dlopen on behalf of another object, with that object's search path.
//
//   Owns      nothing; the handle is the caller's.
//   Threads   safe.
//   Errors    as dlopen; dlerror then describes the last attempt.
//   Faults    makes no driver calls.
//   Source    glibc searches the DT_RUNPATH or DT_RPATH of whoever called dlopen. A wrapper is that caller, so it has to look itself.
#pragma once

namespace cuaudit::faults {

// `caller`: the return address of the intercepted call.
void* OpenAsCaller(const char* file, int flags, const void* caller) noexcept;

int NextDlclose(void* handle) noexcept;

}  // namespace cuaudit::faults
