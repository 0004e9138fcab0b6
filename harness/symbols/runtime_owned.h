// SPDX-License-Identifier: MIT
// runtime_owned.h: tells what a CUDA runtime acquired for itself from what a program acquired through it.
//
//   Threads   one thread.
//   Errors    none: a stack without names or modules is the program's.
//
// A runtime retains the primary context for itself and never gives the program a reference. It loads the modules of the program's kernels
// when they are first needed. A library that the program loads by cudaLibraryLoadData or cudaLibraryLoadFromFile is the program's.
#pragma once

#include <vector>

#include "faults/driver/kinds.h"
#include "reports/run.h"

namespace cuaudit::harness {

// True for kinds that a runtime acquires for itself.
bool MayBeOfRuntime(driver::Kind kind);

// `stack` is that of the acquiring call, whole, innermost frame first.
bool IsOfRuntime(driver::Kind kind, const std::vector<report::Frame>& stack);

}  // namespace cuaudit::harness
