// SPDX-License-Identifier: MIT
// similarity.h: which defect of one release is which of another one, when the program was rewritten in between.
//
//   Errors    none.
//
// First by fingerprint. What is left is compared by what a rewriting leaves alone: the rule and the acquiring call have to be equal; kinds,
// acquiring function, blamed function, failing calls and the functions around count with weights. A function counts as renamed only when
// its old name is gone from the new report and its new name is not in the old one, so that two functions that both exist are never taken
// for one another. Pairs are made best first, each defect once, down to kAlike.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/compare/known_defect.h"

namespace cuaudit::harness {

// The least likeness of two defects that are one: 0 is nothing in common, 1 is everything.
inline constexpr double kAlike = 0.6;

using Names = std::set<std::string, std::less<>>;

// Functions that the two reports speak of.
struct FunctionNames {
  Names before;
  Names after;
};

// 0 to 1.
double Likeness(const KnownDefect& before, const KnownDefect& after, const FunctionNames& names);

// Why `after` is taken for `before`, of a pair whose fingerprints differ.
report::TakenFor WhyTaken(const KnownDefect& before, const KnownDefect& after, const FunctionNames& names);

// True when everything that `part` loses `whole` loses, too, from the same function when the same calls fail in the same functions. Who is
// blamed may change with a wrapper around a release, and then one defect becomes two, or two become one.
// `part_is_before`: it is of the earlier report.
bool IsPartOf(const KnownDefect& part, const KnownDefect& whole, bool part_is_before, const FunctionNames& names);

// Pairs of indices in `before` and `after`, in the order of `before`. All are of one case and mode.
std::vector<std::pair<std::size_t, std::size_t>> PairDefects(std::span<const KnownDefect> before, std::span<const KnownDefect> after,
                                                             const FunctionNames& names);

}  // namespace cuaudit::harness
