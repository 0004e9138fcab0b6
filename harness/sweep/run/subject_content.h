// SPDX-License-Identifier: MIT
// subject_content.h: one number for the content of the audited program, so that a sweep is only continued with its own trials.
//
//   Units     bytes of files. A file larger than kWholeBytes counts by its size, its first and its last MiB.
//   Errors    none: an unreadable file counts as absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/rehearsal.h"

namespace cuaudit::harness {

inline constexpr std::size_t kWholeBytes = std::size_t{256} << 20U;

// For a regular file; 0 for anything else.
std::uint64_t FileContent(const std::string& path);

// Covers the program's file, each argument that names a file (also as --option=FILE) which the program does not write, and the modules that
// make calls in the fault-free run: by build id, or by size and modification time. A drifting program has no modules here, because another
// run may call from other ones.
std::uint64_t SubjectContent(const Subject& subject, const Rehearsal& rehearsal);

// The same for the modules that make driver calls, by their build ids.
std::uint64_t ModulesContent(const Rehearsal& rehearsal);

// Hash of the program and everything else that two sweeps must share to continue each other's trials: its command, what it is launched
// with, its content and its rehearsal.
std::uint64_t SubjectHash(const Subject& subject, const Rehearsal& rehearsal, const JudgeOptions& judge);

}  // namespace cuaudit::harness
