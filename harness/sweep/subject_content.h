// SPDX-License-Identifier: MIT
// subject_content.h: what the audited program is made of, as one number: a sweep goes on with its own trials only.
//
//   Threads   safe; no shared state.
//   Units     bytes of files; a file beyond kWholeBytes counts by its size, its first and its last MiB.
//   Errors    none: a file that cannot be read counts as absent.
//   Faults    makes no driver calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/sweep/observation.h"
#include "harness/sweep/rehearsal.h"

namespace cuaudit::harness {

inline constexpr std::size_t kWholeBytes = std::size_t{256} << 20U;

// Of a regular file; 0 for anything else.
std::uint64_t FileContent(const std::string& path);

// The program's file, each argument that names a file (also as --option=FILE) to which the program does not write, and the modules in which
// the fault-free run's calls were made: by build id, or by size and time of change. Of a drifting program no modules: another run may call
// from others.
std::uint64_t SubjectContent(const Subject& subject, const Rehearsal& rehearsal);

}  // namespace cuaudit::harness
