// SPDX-License-Identifier: MIT
#include "harness/compare/similarity.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

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
  Parts(const BothNames& names, bool parts_are_before) : likeness_(names), parts_are_before_(parts_are_before) {}

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
                            const std::vector<bool>& are_parts, bool parts_are_before, const BothNames& names) {
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

bool HasSecondFaults(const KnownDefect& defect) {
  return std::any_of(defect.failing.begin(), defect.failing.end(), [](const FailingWay& way) { return way.unwinding; });
}

bool PlacesCompare(const KnownDefect& before, const KnownDefect& after) {
  return !before.failing.empty() && !after.failing.empty() && !HasSecondFaults(before) && !HasSecondFaults(after);
}

bool HasWaysOf(const KnownDefect& whole, const KnownDefect& part) {
  const auto has = [&whole](const FailingWay& way) {
    const auto same = [&way](const FailingWay& other) { return IsSameWay(other, way); };
    return std::any_of(whole.failing.begin(), whole.failing.end(), same) || std::any_of(whole.further.begin(), whole.further.end(), same);
  };
  return std::all_of(part.failing.begin(), part.failing.end(), has);
}

Index PairedBeside(const KnownDefect& defect, std::span<const KnownDefect> all, const std::vector<Index>& pairs) {
  for (std::size_t i = 0; i < all.size() && !defect.beside.empty(); ++i) {
    if (pairs[i] && std::find(defect.beside.begin(), defect.beside.end(), all[i].fingerprint) != defect.beside.end()) return i;
  }
  return {};
}

std::vector<Index> Doubts(std::span<const KnownDefect> gone, std::span<const KnownDefect> fresh, const BothNames& names) {
  std::vector<Index> doubts(gone.size());
  if (fresh.empty() || gone.size() > kMostPairs / fresh.size()) return doubts;
  Likeness likeness(names);
  std::vector<Numbered> after;
  for (const KnownDefect& defect : fresh) after.push_back(likeness.Number(defect));
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const Numbered before = likeness.Number(gone[i]);
    const auto found = std::find_if(after.begin(), after.end(), [&](const Numbered& one) { return likeness.InDoubt(before, one); });
    if (found != after.end()) doubts[i] = static_cast<std::size_t>(found - after.begin());
  }
  return doubts;
}

void AddNear(const std::vector<std::size_t>& sorted, std::size_t at, std::vector<std::size_t>* to) {
  const auto middle = std::lower_bound(sorted.begin(), sorted.end(), at);
  const auto near = static_cast<std::ptrdiff_t>(kNear);
  const auto first = middle - std::min<std::ptrdiff_t>(near, middle - sorted.begin());
  const auto last = middle + std::min<std::ptrdiff_t>(near, sorted.end() - middle);
  to->insert(to->end(), first, last);
}

namespace {

// A pair of equal fingerprints but for the number behind them is one of several of one function.
constexpr double kSameName = 2;
constexpr double kSameFingerprint = 0.01;  // decides between equals

// "v2-0123456789abcdef-2" is the second defect of v2-0123456789abcdef.
std::string_view WithoutNumber(std::string_view fingerprint) {
  const std::size_t digits = fingerprint.find_last_not_of("0123456789");
  const bool numbered = digits != std::string_view::npos && fingerprint[digits] == '-' && digits + 1 < fingerprint.size() &&
                        std::count(fingerprint.begin(), fingerprint.end(), '-') > 1;
  return numbered ? fingerprint.substr(0, digits) : fingerprint;
}

// Finds what is worth a comparison among the `others`.
class Near {
 public:
  Near(const std::vector<Numbered>& defects, const Indices& others) : all_(others) {
    for (const std::size_t i : others) {
      const Numbered& one = defects[i];
      if (one.blame != 0) by_function_[one.blame].push_back(i);
      for (const std::uint32_t function : one.stack) by_function_[function].push_back(i);
    }
    for (auto& [function, indices] : by_function_) indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  }

  // `at` is the place of `one` in the order of the others.
  Indices To(const Numbered& one, std::size_t at) const {
    Indices near;
    AddNear(all_, at, &near);
    const auto add = [&](std::uint32_t function) {
      const auto found = by_function_.find(function);
      if (found != by_function_.end()) AddNear(found->second, at, &near);
    };
    add(one.blame);
    for (const std::uint32_t function : one.stack) add(function);
    std::sort(near.begin(), near.end());
    near.erase(std::unique(near.begin(), near.end()), near.end());
    return near;
  }

 private:
  const Indices& all_;
  std::map<std::uint32_t, Indices> by_function_;
};

struct Candidate {
  double worth;
  std::size_t before, after;
};

class Pairing {
 public:
  Pairing(std::span<const KnownDefect> before, std::span<const KnownDefect> after, const BothNames& names)
      : likeness_(names), taken_before_(before.size()), taken_after_(after.size()) {
    for (const KnownDefect& defect : before) before_.push_back(likeness_.Number(defect));
    for (const KnownDefect& defect : after) after_.push_back(likeness_.Number(defect));
  }

  std::vector<std::pair<std::size_t, std::size_t>> Pair() {
    for (const auto& [name, group] : Groups([](const Numbered& one) { return WithoutNumber(one.defect->fingerprint); })) {
      if (!name.empty()) PairGroup(group, kSameName);
    }
    for (const auto& [call, group] : Groups([](const Numbered& one) { return WithoutVersion(one.defect->call); })) PairGroup(group, 0);
    std::sort(pairs_.begin(), pairs_.end());
    return std::move(pairs_);
  }

 private:
  struct Group {
    Indices before, after;
  };

  // Those that have no pair yet.
  template <typename KeyOf>
  std::map<std::string_view, Group> Groups(const KeyOf& key) const {
    std::map<std::string_view, Group> groups;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (!taken_before_[i]) groups[key(before_[i])].before.push_back(i);
    }
    for (std::size_t j = 0; j < after_.size(); ++j) {
      if (!taken_after_[j]) groups[key(after_[j])].after.push_back(j);
    }
    return groups;
  }

  // `same` is what equal names count beside the likeness.
  void PairGroup(const Group& group, double same) {
    if (group.before.empty() || group.after.empty()) return;
    std::vector<Candidate> candidates;
    const auto add = [&](std::size_t i, std::size_t j) {
      const bool equal = same != 0 && before_[i].defect->fingerprint == after_[j].defect->fingerprint;
      const double worth = same + likeness_.Of(before_[i], after_[j]) + (equal ? kSameFingerprint : 0);
      if (worth >= kAlike) candidates.push_back({worth, i, j});
    };
    const bool few = group.before.size() <= kMostPairs / group.after.size();
    if (few) {
      for (const std::size_t i : group.before) {
        for (const std::size_t j : group.after) add(i, j);
      }
    } else {
      const Near near(after_, group.after);
      for (std::size_t place = 0; place < group.before.size(); ++place) {
        const std::size_t at = group.after[place * group.after.size() / group.before.size()];
        for (const std::size_t j : near.To(before_[group.before[place]], at)) add(group.before[place], j);
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
    for (const Candidate& one : candidates) {
      if (taken_before_[one.before] || taken_after_[one.after]) continue;
      taken_before_[one.before] = taken_after_[one.after] = true;
      pairs_.emplace_back(one.before, one.after);
    }
  }

  Likeness likeness_;
  std::vector<Numbered> before_;
  std::vector<Numbered> after_;
  std::vector<bool> taken_before_;
  std::vector<bool> taken_after_;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
};

}  // namespace

double LikenessOf(const KnownDefect& before, const KnownDefect& after, const BothNames& names) {
  Likeness likeness(names);
  const Numbered one = likeness.Number(before);
  const Numbered other = likeness.Number(after);
  return likeness.Of(one, other);
}

std::vector<std::pair<std::size_t, std::size_t>> PairDefects(std::span<const KnownDefect> before, std::span<const KnownDefect> after,
                                                             const BothNames& names) {
  return Pairing(before, after, names).Pair();
}

report::TakenFor WhyTaken(const KnownDefect& before, const KnownDefect& after, const BothNames& names) {
  using report::Taken;
  Likeness likeness(names);
  const Numbered was = likeness.Number(before);
  const Numbered is = likeness.Number(after);
  const auto why = [&](std::uint32_t old, std::uint32_t fresh) {
    const double alike = likeness.OfFunctions(old, fresh);
    if (alike > 0) return alike == kMoved ? Taken::Moved : Taken::Renamed;
    return likeness.OfNeighbours(old, was, fresh, is) > 0 ? Taken::Inlined : Taken::Alike;
  };
  const std::string function = before.stack.empty() ? "" : before.stack.front();
  if (was.front() != is.front()) return {why(was.front(), is.front()), function, before.fingerprint};
  if (was.blame != is.blame) {
    const Taken blamed = why(was.blame, is.blame);
    return {blamed == Taken::Alike ? Taken::Blamed : blamed, before.blame, before.fingerprint};
  }
  const bool numbered = WithoutNumber(before.fingerprint) == WithoutNumber(after.fingerprint);
  return {numbered ? Taken::Numbered : Taken::Alike, function, before.fingerprint};
}

}  // namespace cuaudit::harness
