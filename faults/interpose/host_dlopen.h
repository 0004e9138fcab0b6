// SPDX-License-Identifier: MIT
// host_dlopen.h: dlopen and dlmopen on behalf of another object, with that object's search path.
//
//   Owns      nothing; the handle is the caller's.
//   Threads   safe.
//   Errors    as dlopen; dlerror then describes the last attempt.
//   Faults    makes no driver calls.
//   Source    glibc searches the DT_RUNPATH or DT_RPATH of whoever called dlopen. A wrapper is that caller, so it has to look itself,
//             in glibc's order: what is loaded under that name, DT_RPATH where there is no DT_RUNPATH, LD_LIBRARY_PATH, DT_RUNPATH,
//             the cache and the system's directories. A loaded drop-in is so found before any other libcuda.so.1.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

// Once, while the library is loaded: what the program makes of its environment later does not count.
void RememberLibraryPath() noexcept;

// `caller`: the return address of the intercepted call.
void* OpenAsCaller(const char* file, int flags, const void* caller) noexcept;
// dlmopen, into the namespace `space`.
void* OpenAsCaller(std::int64_t space, const char* file, int flags, const void* caller) noexcept;

// The program itself, which dlopen(NULL) answers: always there, and no reference to anything.
bool IsTheProgram(void* handle) noexcept;

int NextDlclose(void* handle) noexcept;

// Where the loaded object that `caller` lies in begins, 0 when it lies in none.
std::uint64_t LoadedObjectOf(const void* caller) noexcept;

}  // namespace cuaudit::faults
