// SPDX-License-Identifier: MIT
#include "harness/compare/likeness.h"

#include <algorithm>
#include <utility>

#include "harness/defect/defects.h"

namespace cuaudit::harness {

namespace {
using Numbers = std::vector<std::uint32_t>;

// What each sign counts. Signs that neither defect has do not count at all.
constexpr double kKinds = 2;
constexpr double kAcquirer = 2;
constexpr double kBlame = 2;
constexpr double kFailing = 2;
constexpr double kAround = 2;

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

void SortOnce(Numbers* numbers) {
  std::sort(numbers->begin(), numbers->end());
  numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
}

double Jaccard(const Numbers& a, const Numbers& b) {
  std::size_t common = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    if (*i == *j) ++common;
    if (*i < *j) ++i;
    else if (*j < *i) ++j;
    else ++i, ++j;
  }
  const std::size_t all = a.size() + b.size() - common;
  return all == 0 ? 1 : static_cast<double>(common) / static_cast<double>(all);
}

bool Contains(const Numbers& stack, std::uint32_t function) { return std::find(stack.begin(), stack.end(), function) != stack.end(); }

// The longest list of functions that both stacks have in the same order, as a part of the longer stack.
double StackLikeness(const Numbers& a, const Numbers& b, const Likeness& alike) {
  std::vector<double> row(b.size() + 1, 0);
  for (const std::uint32_t one : a) {
    double corner = 0;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const double best = std::max({row[j], row[j - 1], corner + alike.OfFunctions(one, b[j - 1])});
      corner = row[j];
      row[j] = best;
    }
  }
  const std::size_t longer = std::max(a.size(), b.size());
  return longer == 0 ? 0 : row.back() / static_cast<double>(longer);
}

// A callee of the blamed function fails for others, too.
bool FailsForOthers(const KnownDefect& defect, const std::map<FailingWay, std::uint64_t>& tried) {
  return std::any_of(defect.failing.begin(), defect.failing.end(), [&](FailingWay way) {
    if (way.unwinding || way.function == defect.blame) return false;
    const std::uint64_t places = std::exchange(way.places, 0);
    const auto found = tried.find(way);
    return found != tried.end() && found->second > places;
  });
}

}  // namespace

void AddNames(const report::Run& run, FunctionNames* names) {
  AddFunctions(run, &names->all);
  if (run.sequence) {
    for (const report::CallPlace& place : run.sequence->places) {
      if (place.at) names->calling.insert(std::string(PlainName(place.at->function)));
    }
  }
  if (!run.coverage) return;
  for (const report::Tried& one : run.coverage->tried) {
    names->calling.insert(one.function);
    names->tried[{one.call, one.code, one.how, one.unwinding, one.function, 0}] += one.places;
  }
}

void AddNames(const KnownDefect& defect, FunctionNames* names) {
  names->all.insert(defect.stack.begin(), defect.stack.end());
  names->all.insert(defect.blame);
  if (!defect.stack.empty()) names->calling.insert(defect.stack.front());
  for (const FailingWay& way : defect.failing) {
    names->all.insert(way.function);
    names->calling.insert(way.function);
  }
}

std::uint32_t Likeness::NumberIn(std::string_view name, Table* table) {
  const auto known = table->find(name);
  if (known != table->end()) return known->second;
  const auto number = static_cast<std::uint32_t>(table->size() + 1);
  table->emplace(name, number);
  return number;
}

std::uint32_t Likeness::Function(std::string_view name) {
  if (name.empty()) return 0;
  const std::uint32_t number = NumberIn(name, &function_numbers_);
  if (number == functions_.size()) {
    Row row = {.gone = !names_.after.all.contains(name), .fresh = !names_.before.all.contains(name)};
    row.surely_gone = row.gone && names_.before.calling.contains(name);
    row.surely_fresh = row.fresh && names_.after.calling.contains(name) && !names_.only_defects;
    row.last = NumberIn(LastPart(name), &words_);
    functions_.push_back(row);
  }
  return number;
}

Numbered Likeness::Number(const KnownDefect& defect) {
  Numbered one;
  one.defect = &defect;
  one.loss = words::WithoutItsContext(defect.rule);
  one.call = NumberIn(WithoutVersion(defect.call), &words_);
  one.blame = Function(defect.blame);
  for (const std::string& function : defect.stack) one.stack.push_back(Function(function));
  for (const std::string& kind : defect.kinds) one.kinds.push_back(NumberIn(kind, &words_));
  for (const FailingWay& way : defect.failing) {
    one.failing.push_back(NumberIn((way.unwinding ? "then " : "") + std::string(WithoutVersion(way.call)), &words_));
  }
  SortOnce(&one.kinds);
  SortOnce(&one.failing);
  return one;
}

double Likeness::OfFunctions(std::uint32_t before, std::uint32_t after) const {
  if (before == after) return 1;
  if (before == 0 || after == 0 || !functions_[before].gone || !functions_[after].fresh) return 0;
  return functions_[before].last == functions_[after].last ? kMoved : kRenamed;
}

double Likeness::OfNeighbours(std::uint32_t before, const Numbered& in_before, std::uint32_t after, const Numbered& in_after) const {
  if (before == 0 || after == 0) return 0;
  const bool swallowed = functions_[before].gone && Contains(in_before.stack, after);
  const bool split = functions_[after].fresh && Contains(in_after.stack, before);
  return swallowed || split ? kInlined : 0;
}

bool Likeness::SameWay(const Numbered& before, const Numbered& after) const {
  const Numbers& shorter = before.stack.size() < after.stack.size() ? before.stack : after.stack;
  const Numbers& longer = before.stack.size() < after.stack.size() ? after.stack : before.stack;
  auto at = longer.begin();
  for (const std::uint32_t function : shorter) {
    at = std::find_if(at, longer.end(), [&](std::uint32_t other) {
      return (&shorter == &before.stack ? OfFunctions(function, other) : OfFunctions(other, function)) > 0;
    });
    if (at == longer.end()) return false;
    ++at;
  }
  return !shorter.empty();
}

bool Likeness::MayBeNeighbours(const Numbered& before, const Numbered& after) const {
  if (functions_[before.blame].surely_gone || functions_[after.blame].surely_fresh) return false;
  return FailsForOthers(*before.defect, names_.before.tried) || FailsForOthers(*after.defect, names_.after.tried);
}

bool Likeness::MayAcquire(const Numbered& before, const Numbered& after) const {
  const std::uint32_t by_before = before.front();
  const std::uint32_t by_after = after.front();
  return by_before == 0 || by_after == 0 || OfFunctions(by_before, by_after) > 0 || OfNeighbours(by_before, before, by_after, after) > 0 ||
         SameWay(before, after);
}

bool Likeness::MayBeOne(const Numbered& before, const Numbered& after) const {
  if (!MayAcquire(before, after)) return false;
  const std::uint32_t was = before.blame;
  const std::uint32_t is = after.blame;
  if (was == is || was == 0 || is == 0) return true;
  if (OfFunctions(was, is) > 0) return !MayBeNeighbours(before, after);
  if (OfNeighbours(was, before, is, after) > 0) return true;
  return (functions_[was].gone || (functions_[is].fresh && !names_.only_defects)) && SameWay(before, after);
}

bool Likeness::InDoubt(const Numbered& before, const Numbered& after) const {
  return before.blame != after.blame && OfFunctions(before.blame, after.blame) > 0 && before.loss == after.loss &&
         before.call == after.call && Signs(before, after) >= kAlike && MayAcquire(before, after) && MayBeNeighbours(before, after);
}

double Likeness::Of(const Numbered& before, const Numbered& after) const {
  if (before.loss != after.loss || before.call != after.call) return 0;
  const double signs = Signs(before, after);
  return signs >= kAlike && !MayBeOne(before, after) ? 0 : signs;
}

double Likeness::Signs(const Numbered& before, const Numbered& after) const {
  double sum = 0;
  double most = 0;
  const auto count = [&](double weight, bool either, double likeness) {
    if (!either) return;
    most += weight;
    sum += weight * likeness;
  };
  const std::uint32_t by_before = before.front();
  const std::uint32_t by_after = after.front();
  count(kKinds, !before.kinds.empty() || !after.kinds.empty(), Jaccard(before.kinds, after.kinds));
  count(kAcquirer, by_before != 0 || by_after != 0,
        std::max(OfFunctions(by_before, by_after), OfNeighbours(by_before, before, by_after, after)));
  count(kBlame, before.blame != 0 || after.blame != 0,
        std::max(OfFunctions(before.blame, after.blame), OfNeighbours(before.blame, before, after.blame, after)));
  count(kFailing, !before.failing.empty() || !after.failing.empty(), Jaccard(before.failing, after.failing));
  count(kAround, !before.stack.empty() || !after.stack.empty(), StackLikeness(before.stack, after.stack, *this));
  return most == 0 ? 1 : sum / most;
}

}  // namespace cuaudit::harness
