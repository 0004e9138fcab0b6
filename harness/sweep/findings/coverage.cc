// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/coverage.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "faults/driver/effects.h"
#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

// Counts the places of each way to fail by function.
class TriedWays {
 public:
  void Add(const report::Tried& way, const std::vector<report::Frame>& stack) {
    ProgramPlace at = PlaceInProgram(stack);
    if (way.unwinding) at.function.clear();  // most stacks of those calls are known to their trials only
    places_[{way.call, way.code, way.how, way.unwinding, std::move(at.function)}].insert(at.place);
  }
  std::vector<report::Tried> Sorted() const {
    std::vector<report::Tried> tried;
    for (const auto& [way, places] : places_) {
      const auto& [call, code, how, unwinding, function] = way;
      tried.push_back({call, code, how, unwinding, function, places.size()});
    }
    return tried;
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string, bool, std::string>, std::set<std::uint64_t>> places_;
};

}  // namespace

ProgramPlace PlaceInProgram(const std::vector<report::Frame>& stack) {
  ProgramPlace found;
  found.place = kHashSeed;
  for (const report::Frame& frame : stack) {
    if (!IsProgram(frame)) continue;
    const std::string_view name = PlainName(frame.function);
    if (found.function.empty()) found.function = name;
    found.place = HashNumber(frame.line != 0 ? static_cast<std::uint64_t>(frame.line) : frame.offset, HashText(name, found.place));
  }
  return found;
}

void TriedBefore::Add(const std::string& call, const std::string& function, std::uint64_t places) {
  std::uint64_t& most = places_[{call, function}];
  most = std::max(most, places);
}

std::vector<Novelty> TriedBefore::Compare(const std::vector<report::Acquired>& places) const {
  std::vector<Function> functions;
  std::map<Function, std::set<std::uint64_t>> now;
  for (const report::Acquired& one : places) {
    ProgramPlace at = PlaceInProgram(one.stack);
    functions.emplace_back(one.call, std::move(at.function));
    now[functions.back()].insert(at.place);
  }
  std::vector<Novelty> novelties;
  for (const Function& function : functions) {
    const auto before = places_.find(function);
    const bool same = before != places_.end() && (before->second == 0 || before->second == now[function].size());
    novelties.push_back(before == places_.end() ? Novelty::New : same ? Novelty::Known : Novelty::Changed);
  }
  return novelties;
}

CoverageTable::Row& CoverageTable::RowOf(const WayToFail& way) {
  const std::size_t hash = way.fault.find_first_of("@#");
  const std::size_t equals = way.fault.find('=', way.fault.find('#'));  // not the '=' in '@site='
  const std::size_t comma = way.fault.find(',', equals);
  Row row;
  row.call = way.fault.substr(0, hash);
  row.code = way.fault.substr(equals + 1, comma - equals - 1);
  row.how = way.fault.substr(comma + 1);
  row.site = way.site;
  row.phase = way.phase;
  row.unwinding = way.unwinding;
  std::uint64_t key = HashText(row.how, HashText(row.code, HashText(row.call)));
  key = HashNumber(way.site, HashNumber(static_cast<std::uint64_t>(way.phase), HashNumber(way.unwinding ? 1 : 0, key)));
  const auto [found, fresh] = by_key_.emplace(key, rows_.size());
  if (fresh) rows_.push_back(std::move(row));
  return rows_[found->second];
}

void CoverageTable::Plan(const WayToFail& way, std::size_t trial) { RowOf(way).trials.push_back(trial); }

void CoverageTable::LeaveOut(const WayToFail& way, Reason why) {
  Row& row = RowOf(way);
  if (row.why_not == Reason::None) row.why_not = why;
}

report::Coverage CoverageTable::Result(const std::map<std::size_t, TrialResult>& results,
                                       const std::function<report::Acquired(std::uint64_t)>& site, Reason untried) const {
  report::Coverage coverage;
  coverage.reachable = rows_.size();
  std::set<std::pair<std::string, std::string>> tried;
  std::set<std::string> calls;
  TriedWays ways;
  for (const Row& row : rows_) {
    tried.emplace(row.call, row.code);
    calls.insert(row.call);
    const auto fired = [&](std::size_t trial) {
      const auto result = results.find(trial);
      return result != results.end() && result->second.fired;
    };
    if (std::any_of(row.trials.begin(), row.trials.end(), fired)) {
      ++coverage.reached;
      ways.Add({row.call, row.code, row.how, row.unwinding, {}, 0}, row.unwinding ? std::vector<report::Frame>() : site(row.site).stack);
      continue;
    }
    report::NotReached one;
    one.call = row.call;
    one.code = row.code;
    one.how = row.how;
    if (row.phase != faults::Phase::Any) one.phase = std::string(faults::Name(row.phase));
    one.unwinding = row.unwinding;
    const auto first = row.trials.empty() ? results.end() : results.find(row.trials.front());
    if (first != results.end()) {
      one.missed = first->second.missed;
    } else {
      one.why = row.trials.empty() ? row.why_not : untried;
    }
    one.stack = site(row.site).stack;
    coverage.not_reached.push_back(std::move(one));
  }
  coverage.tried = ways.Sorted();
  coverage.codes_tried = tried.size();
  for (const std::string& call : calls) {
    coverage.codes_documented += driver::LegalCodes(static_cast<driver::BaseId>(driver::FindBase(call))).size();
  }
  return coverage;
}

}  // namespace cuaudit::harness
