// SPDX-License-Identifier: MIT
#include "harness/compare/parts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "harness/compare/similarity.h"

namespace cuaudit::harness {
namespace {

using Indices = std::vector<std::size_t>;

// A defect that may have parts, and at how many places of each of its ways to fail nothing else accounts for the loss.
struct Whole {
  Numbered defect;
  std::vector<std::uint64_t> left;  // for each of its failing ways
};

class Parts {
 public:
  Parts(const FunctionNames& names, bool parts_are_before) : likeness_(names), parts_are_before_(parts_are_before) {}

  Numbered Number(const KnownDefect& defect) { return likeness_.Number(defect); }
  bool MayBeRenamed(std::uint32_t function, bool of_part) const { return likeness_.MayBeRenamed(function, of_part == parts_are_before_); }

  // Whatever `part` loses is no longer left of `whole`.
  void Subtract(const KnownDefect& part, Whole* whole) {
    for (const FailingWay& way : part.failing) {
      const Index found = WayOf(way, *whole);
      if (found) whole->left[*found] -= std::min(whole->left[*found], way.places);
    }
  }

  bool Fits(const Numbered& part, const Whole& whole) {
    const Numbered& of = whole.defect;
    if (part.loss != of.loss || part.call != of.call || !LosesNoMore(*part.defect, *of.defect)) return false;
    const Numbered& before = parts_are_before_ ? part : of;
    const Numbered& after = parts_are_before_ ? of : part;
    if (!likeness_.MayBeOne(before, after) || !likeness_.SameWay(before, after)) return false;
    // How often a call is made on the way back depends on how the program unwinds.
    return std::all_of(part.defect->failing.begin(), part.defect->failing.end(), [&](const FailingWay& way) {
      const Index found = WayOf(way, whole);
      return found && (way.unwinding || way.places <= whole.left[*found]);
    });
  }

 private:
  // The failing way of the whole that is `way` of a part.
  Index WayOf(const FailingWay& way, const Whole& whole) {
    const std::vector<FailingWay>& ways = whole.defect.defect->failing;
    const auto found = std::find_if(ways.begin(), ways.end(), [&](const FailingWay& other) {
      if (way.call != other.call || way.code != other.code || way.how != other.how || way.unwinding != other.unwinding) return false;
      const std::string& before = parts_are_before_ ? way.function : other.function;
      const std::string& after = parts_are_before_ ? other.function : way.function;
      return likeness_.OfFunctions(before, after) > 0;
    });
    if (found == ways.end()) return {};
    return static_cast<std::size_t>(found - ways.begin());
  }

  // In one trial. An old baseline file does not say how much.
  static bool LosesNoMore(const KnownDefect& part, const KnownDefect& whole) {
    if (!std::includes(whole.kinds.begin(), whole.kinds.end(), part.kinds.begin(), part.kinds.end())) return false;
    if (whole.lost.empty()) return true;
    return std::all_of(part.lost.begin(), part.lost.end(), [&](const auto& lost) {
      const auto of_whole = whole.lost.find(lost.first);
      return of_whole != whole.lost.end() && lost.second.count <= of_whole->second.count;
    });
  }

  Likeness likeness_;
  bool parts_are_before_;
};

}  // namespace

std::vector<Index> WholesOf(std::span<const KnownDefect> parts, std::span<const KnownDefect> wholes, const std::vector<Index>& pairs,
                            const std::vector<bool>& are_parts, bool parts_are_before, const FunctionNames& names) {
  std::vector<Index> found(parts.size());
  const auto left = static_cast<std::size_t>(std::count(pairs.begin(), pairs.end(), Index()));
  if (left == 0 || wholes.empty()) return found;
  Parts fit(names, parts_are_before);
  // By the acquiring function; those whose function has another name in the other report may be any of these.
  std::map<std::uint32_t, Indices> by_function;
  Indices renamed;
  std::vector<Whole> all;
  for (std::size_t j = 0; j < wholes.size(); ++j) {
    Whole& whole = all.emplace_back();
    whole.defect = fit.Number(wholes[j]);
    for (const FailingWay& way : wholes[j].failing) whole.left.push_back(way.places);
    const std::uint32_t function = whole.defect.front();
    if (function == 0 || are_parts[j]) continue;
    by_function[function].push_back(j);
    if (fit.MayBeRenamed(function, false)) renamed.push_back(j);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (pairs[i]) fit.Subtract(parts[i], &all[*pairs[i]]);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Numbered part = pairs[i] ? Numbered() : fit.Number(parts[i]);
    if (pairs[i] || part.front() == 0 || parts[i].failing.empty()) continue;
    const std::size_t at = i * wholes.size() / parts.size();
    const auto add = [&](const Indices& list, Indices* to) {
      if (list.size() <= kMostPairs / left) to->insert(to->end(), list.begin(), list.end());
      else AddNear(list, at, to);
    };
    Indices candidates;
    if (const auto same = by_function.find(part.front()); same != by_function.end()) add(same->second, &candidates);
    if (fit.MayBeRenamed(part.front(), true)) add(renamed, &candidates);
    std::sort(candidates.begin(), candidates.end());
    const auto whole = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t j) { return fit.Fits(part, all[j]); });
    if (whole == candidates.end()) continue;
    found[i] = *whole;
    fit.Subtract(parts[i], &all[*whole]);
  }
  return found;
}

}  // namespace cuaudit::harness
