// SPDX-License-Identifier: MIT
// writers.h: processes that still write into a recording.
//
//   Errors    none: a process that cannot be looked into counts when the recording names it and has no end of it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "harness/recording/recording.h"

namespace cuaudit::harness {

// A living process, other than this one, that has the file mapped in order to write to it; nothing when there is none.
std::optional<pid_t> WriterOf(const std::string& path, const Recording& recording);

}  // namespace cuaudit::harness
