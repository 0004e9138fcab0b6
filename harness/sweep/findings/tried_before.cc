// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/tried_before.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {

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

}  // namespace cuaudit::harness
