// SPDX-License-Identifier: MIT
// similarity.h: which defect of one release is which of another one, when the program was rewritten in between, and which are parts of
// one.
//
// README.md says what counts. Pairs are made best first, each defect once, down to kAlike. Of more than kMostPairs possible pairs with one
// call, each defect is compared only with those next to it in the order of the reports, and with those next to it among the ones that share
// a function with it, kNear of each on either side.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "harness/compare/known_defect.h"
#include "harness/compare/likeness.h"

namespace cuaudit::harness {

// Which defects of one release are parts of one of the other.
//
// Who is blamed may change with a wrapper around a release, and then one defect becomes two, or two become one. A part loses nothing but
// what the whole loses, and only what no other defect accounts for: the pair of the whole is subtracted from it, and each of its parts. So
// a whole that is there as it was has no parts, and the same mistake in one more function is new.

using Index = std::optional<std::size_t>;

// For each of `parts` the first of `wholes` that it is a part of. `pairs` has for each of `parts` its pair among the wholes; those that
// have one are no parts. `are_parts`: these wholes are parts themselves. `parts_are_before`: they are of the earlier report.
std::vector<Index> WholesOf(std::span<const KnownDefect> parts, std::span<const KnownDefect> wholes, const std::vector<Index>& pairs,
                            const std::vector<bool>& are_parts, bool parts_are_before, const BothNames& names);

// True when it takes several faults in one trial to show the defect.
bool HasSecondFaults(const KnownDefect& defect);

// True when single faults show both, so that the places at which they fail can be compared.
bool PlacesCompare(const KnownDefect& before, const KnownDefect& after);

// True when `whole` is lost in each way in which `part` is, whatever the number of places.
bool HasWaysOf(const KnownDefect& whole, const KnownDefect& part);

// Index of the first of the defects beside `defect` (KnownDefect::beside) that has a pair. `pairs` has one entry for each of `all`.
Index PairedBeside(const KnownDefect& defect, std::span<const KnownDefect> all, const std::vector<Index>& pairs);

// For each of `gone`, defects of the earlier report without a pair, the first of `fresh` that would be its pair were it known that the
// blamed function has another name now. Of more than kMostPairs possible pairs none is looked at.
std::vector<Index> Doubts(std::span<const KnownDefect> gone, std::span<const KnownDefect> fresh, const BothNames& names);

inline constexpr std::size_t kMostPairs = std::size_t{1} << 20U;
inline constexpr std::size_t kNear = 16;

// Adds the entries of `sorted` around `at`, at most kNear on either side.
void AddNear(const std::vector<std::size_t>& sorted, std::size_t at, std::vector<std::size_t>* to);

// 0 to 1.
double LikenessOf(const KnownDefect& before, const KnownDefect& after, const BothNames& names);

// Pairs of indices in `before` and `after`, in the order of `before`. All are of one case and mode.
std::vector<std::pair<std::size_t, std::size_t>> PairDefects(std::span<const KnownDefect> before, std::span<const KnownDefect> after,
                                                             const BothNames& names);

// Why `after` is taken for `before`, of a pair whose fingerprints differ.
report::TakenFor WhyTaken(const KnownDefect& before, const KnownDefect& after, const BothNames& names);

}  // namespace cuaudit::harness
