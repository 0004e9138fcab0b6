// SPDX-License-Identifier: MIT
// host_objects.h: dlopen and dlmopen on behalf of another object, with the search path of that object; records of dlopen references and
// mutexes; threads.
//
// glibc searches the DT_RUNPATH or DT_RPATH of the object that called dlopen. With a wrapper that object would be the drop-in, so the
// wrapper searches itself, in glibc's order: objects loaded under that name, DT_RPATH if there is no DT_RUNPATH, LD_LIBRARY_PATH,
// DT_RUNPATH, then the cache and the system's directories. A loaded drop-in is thus found before any other libcuda.so.1. The caller owns
// the handle. Errors are those of dlopen; dlerror then describes the last attempt.
#pragma once

#include <cstdint>

namespace cuaudit::faults {

// Called once, while the library is loaded: later changes of the environment do not count.
void RememberLibraryPath() noexcept;

// `caller`: the return address of the intercepted call.
void* OpenAsCaller(const char* file, int flags, const void* caller) noexcept;
// dlmopen, into the namespace `space`.
void* OpenAsCaller(std::int64_t space, const char* file, int flags, const void* caller) noexcept;

// True for the handle of the program itself, which dlopen(NULL) returns. It is no reference that must be closed.
bool IsTheProgram(void* handle) noexcept;

int NextDlclose(void* handle) noexcept;

// Waits for threads that are about to detach, so that the journal has their records before the process ends.
void AwaitDetaching() noexcept;
void ForgetThreads() noexcept;  // called in a forked child

// Start address of the loaded object that contains `caller`; 0 when there is none.
std::uint64_t LoadedObjectOf(const void* caller) noexcept;

}  // namespace cuaudit::faults
