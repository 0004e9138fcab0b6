// SPDX-License-Identifier: MIT
#include "harness/compare/similarity.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

namespace cuaudit::harness {
namespace {

using report::Rule;

// What each sign counts. Signs that neither defect has do not count at all.
constexpr double kKinds = 2;
constexpr double kAcquirer = 2;
constexpr double kBlame = 2;
constexpr double kFailing = 2;
constexpr double kAround = 2;

// How far a function with another name may be the same one.
constexpr double kMoved = 0.9;    // into or out of a class or namespace
constexpr double kRenamed = 0.7;  // the old name is gone, the new name is new
constexpr double kInlined = 0.6;  // a neighbour in the stack: inlined, or split

// A pair of equal fingerprints but for the number behind them is one of several of one function.
constexpr double kSameName = 2;

bool SameLoss(Rule a, Rule b) {
  const auto loss = [](Rule rule) { return rule == Rule::Orphaned ? Rule::Leak : rule; };
  return loss(a) == loss(b);
}

// "ns::Player::open" is open.
std::string_view LastPart(std::string_view name) {
  int depth = 0;  // of template arguments
  for (std::size_t i = name.size(); i >= 2; --i) {
    if (name[i - 1] == '>') ++depth;
    if (name[i - 1] == '<') --depth;
    if (depth <= 0 && name[i - 1] == ':' && name[i - 2] == ':') return name.substr(i);
  }
  return name;
}

struct FunctionLikeness {
  const FunctionNames& names;

  double operator()(const std::string& before, const std::string& after) const {
    if (before == after) return 1;
    if (before.empty() || after.empty()) return 0;
    const bool renamed = !names.after.contains(before) && !names.before.contains(after);
    if (!renamed) return 0;
    return LastPart(before) == LastPart(after) ? kMoved : kRenamed;
  }
};

bool Contains(const std::vector<std::string>& stack, const std::string& name) {
  return std::find(stack.begin(), stack.end(), name) != stack.end();
}

// A function without a name of its own any more: its caller has its calls.
double Inlined(const std::string& before, const std::vector<std::string>& stack_before, const std::string& after,
               const std::vector<std::string>& stack_after, const FunctionNames& names) {
  if (before.empty() || after.empty()) return 0;
  const bool swallowed = !names.after.contains(before) && Contains(stack_before, after);
  const bool split = !names.before.contains(after) && Contains(stack_after, before);
  return swallowed || split ? kInlined : 0;
}

double Jaccard(const Names& a, const Names& b) {
  std::size_t common = 0;
  for (const std::string& one : a) common += b.contains(one) ? 1 : 0;
  const std::size_t all = a.size() + b.size() - common;
  return all == 0 ? 1 : static_cast<double>(common) / static_cast<double>(all);
}

Names FailingCalls(const KnownDefect& defect) {
  Names calls;
  for (const FailingWay& way : defect.failing) calls.insert((way.unwinding ? "then " : "") + std::string(WithoutVersion(way.call)));
  return calls;
}

// The longest list of functions that both stacks have in the same order, as a part of the longer stack.
double StackLikeness(const std::vector<std::string>& a, const std::vector<std::string>& b, const FunctionLikeness& alike) {
  std::vector<std::vector<double>> best(a.size() + 1, std::vector<double>(b.size() + 1, 0));
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      best[i][j] = std::max({best[i - 1][j], best[i][j - 1], best[i - 1][j - 1] + alike(a[i - 1], b[j - 1])});
    }
  }
  const std::size_t longer = std::max(a.size(), b.size());
  return longer == 0 ? 0 : best[a.size()][b.size()] / static_cast<double>(longer);
}

// "v2-0123456789abcdef-2" is the second defect of v2-0123456789abcdef.
std::string_view WithoutNumber(std::string_view fingerprint) {
  const std::size_t digits = fingerprint.find_last_not_of("0123456789");
  const bool numbered = digits != std::string_view::npos && fingerprint[digits] == '-' && digits + 1 < fingerprint.size() &&
                        std::count(fingerprint.begin(), fingerprint.end(), '-') > 1;
  return numbered ? fingerprint.substr(0, digits) : fingerprint;
}

}  // namespace

double Likeness(const KnownDefect& before, const KnownDefect& after, const FunctionNames& names) {
  if (!SameLoss(before.rule, after.rule) || WithoutVersion(before.call) != WithoutVersion(after.call)) return 0;
  const FunctionLikeness alike{names};
  double sum = 0;
  double most = 0;
  const auto count = [&](double weight, bool either, double likeness) {
    if (!either) return;
    most += weight;
    sum += weight * likeness;
  };
  count(kKinds, !before.kinds.empty() || !after.kinds.empty(),
        Jaccard(Names(before.kinds.begin(), before.kinds.end()), Names(after.kinds.begin(), after.kinds.end())));
  const std::string by_before = before.stack.empty() ? "" : before.stack.front();
  const std::string by_after = after.stack.empty() ? "" : after.stack.front();
  count(kAcquirer, !by_before.empty() || !by_after.empty(),
        std::max(alike(by_before, by_after), Inlined(by_before, before.stack, by_after, after.stack, names)));
  count(kBlame, !before.blame.empty() || !after.blame.empty(),
        std::max(alike(before.blame, after.blame), Inlined(before.blame, before.stack, after.blame, after.stack, names)));
  count(kFailing, !before.failing.empty() || !after.failing.empty(), Jaccard(FailingCalls(before), FailingCalls(after)));
  count(kAround, !before.stack.empty() || !after.stack.empty(), StackLikeness(before.stack, after.stack, alike));
  return most == 0 ? 1 : sum / most;
}

report::TakenFor WhyTaken(const KnownDefect& before, const KnownDefect& after, const FunctionNames& names) {
  using report::Taken;
  const FunctionLikeness alike{names};
  const auto why = [&](const std::string& was, const std::string& is) {
    const double likeness = alike(was, is);
    if (likeness > 0) return likeness == kMoved ? Taken::Moved : Taken::Renamed;
    return Inlined(was, before.stack, is, after.stack, names) > 0 ? Taken::Inlined : Taken::Alike;
  };
  const std::string by_before = before.stack.empty() ? "" : before.stack.front();
  const std::string by_after = after.stack.empty() ? "" : after.stack.front();
  if (by_before != by_after) return {why(by_before, by_after), by_before, before.fingerprint};
  if (before.blame != after.blame) {
    const Taken blamed = why(before.blame, after.blame);
    return {blamed == Taken::Alike ? Taken::Blamed : blamed, before.blame, before.fingerprint};
  }
  const bool numbered = WithoutNumber(before.fingerprint) == WithoutNumber(after.fingerprint);
  return {numbered ? Taken::Numbered : Taken::Alike, by_before, before.fingerprint};
}

bool IsPartOf(const KnownDefect& part, const KnownDefect& whole, bool part_is_before, const FunctionNames& names) {
  if (!SameLoss(part.rule, whole.rule) || WithoutVersion(part.call) != WithoutVersion(whole.call)) return false;
  if (part.failing.empty() || part.stack.empty() || whole.stack.empty()) return false;
  if (!std::includes(whole.kinds.begin(), whole.kinds.end(), part.kinds.begin(), part.kinds.end())) return false;
  const FunctionLikeness alike{names};
  const auto same = [&](const std::string& of_part, const std::string& of_whole) {
    return (part_is_before ? alike(of_part, of_whole) : alike(of_whole, of_part)) > 0;
  };
  if (!same(part.stack.front(), whole.stack.front())) return false;
  return std::all_of(part.failing.begin(), part.failing.end(), [&](const FailingWay& way) {
    return std::any_of(whole.failing.begin(), whole.failing.end(), [&](const FailingWay& other) {
      return way.call == other.call && way.code == other.code && way.how == other.how && way.unwinding == other.unwinding &&
             way.places <= other.places && same(way.function, other.function);
    });
  });
}

std::vector<std::pair<std::size_t, std::size_t>> PairDefects(std::span<const KnownDefect> before, std::span<const KnownDefect> after,
                                                             const FunctionNames& names) {
  std::map<std::string_view, std::vector<std::size_t>> by_name;
  for (std::size_t j = 0; j < after.size(); ++j) by_name[WithoutNumber(after[j].fingerprint)].push_back(j);
  struct Candidate {
    double worth;
    std::size_t before, after;
  };
  std::vector<bool> taken_before(before.size());
  std::vector<bool> taken_after(after.size());
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const auto take_best = [&](std::vector<Candidate> candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) { return a.worth > b.worth; });
    for (const Candidate& one : candidates) {
      if (taken_before[one.before] || taken_after[one.after]) continue;
      taken_before[one.before] = taken_after[one.after] = true;
      pairs.emplace_back(one.before, one.after);
    }
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto same = by_name.find(WithoutNumber(before[i].fingerprint));
    if (before[i].fingerprint.empty() || same == by_name.end()) continue;
    for (const std::size_t j : same->second) {
      const double equal = before[i].fingerprint == after[j].fingerprint ? 0.01 : 0;  // decides between equals
      candidates.push_back({kSameName + Likeness(before[i], after[j], names) + equal, i, j});
    }
  }
  take_best(std::move(candidates));
  candidates.clear();
  std::map<std::string_view, std::vector<std::size_t>> by_call;
  for (std::size_t j = 0; j < after.size(); ++j) {
    if (!taken_after[j]) by_call[WithoutVersion(after[j].call)].push_back(j);
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto same = taken_before[i] ? by_call.end() : by_call.find(WithoutVersion(before[i].call));
    if (same == by_call.end()) continue;
    for (const std::size_t j : same->second) {
      const double worth = Likeness(before[i], after[j], names);
      if (worth >= kAlike) candidates.push_back({worth, i, j});
    }
  }
  take_best(std::move(candidates));
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace cuaudit::harness
