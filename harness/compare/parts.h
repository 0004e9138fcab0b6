// SPDX-License-Identifier: MIT
// parts.h: which defects of one release are parts of one of the other.
//
//   Errors    none.
//
// Who is blamed may change with a wrapper around a release, and then one defect becomes two, or two become one. A part loses nothing but
// what the whole loses, and only what no other defect accounts for: the pair of the whole is subtracted from it, and each of its parts. So
// a whole that is there as it was has no parts, and the same mistake in one more function is new.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/compare/known_defect.h"
#include "harness/compare/likeness.h"

namespace cuaudit::harness {

using Index = std::optional<std::size_t>;

// For each of `parts` the first of `wholes` that it is a part of. `pairs` has for each of `parts` its pair among the wholes; those that
// have one are no parts. `are_parts`: these wholes are parts themselves. `parts_are_before`: they are of the earlier report.
std::vector<Index> WholesOf(std::span<const KnownDefect> parts, std::span<const KnownDefect> wholes, const std::vector<Index>& pairs,
                            const std::vector<bool>& are_parts, bool parts_are_before, const FunctionNames& names);

}  // namespace cuaudit::harness
