// SPDX-License-Identifier: MIT
#include "suites/support/count_defects.h"

#include <string>

#include "harness/defect/defects.h"

namespace cuaudit::testing {
namespace {

using harness::Rule;

std::uint64_t PlaceOf(const harness::Site& site) {
  return std::uint64_t{site.stack} << 24 ^ std::uint64_t{site.call} << 4 ^ static_cast<std::uint64_t>(site.record_kind);
}

bool IsLoss(Rule rule) { return rule == Rule::Leak || rule == Rule::Orphaned; }

}  // namespace

std::size_t CountDefects(const std::vector<WrongThing>& things) {
  harness::DefectFinder finder;
  report::Run run;
  for (const WrongThing& thing : things) {
    report::Finding finding;
    finding.rule = thing.rule;
    finding.kind = driver::Name(thing.kind);
    run.findings.push_back(finding);
    harness::Shown shown{0, run.findings.size() - 1, thing.kind, thing.place ^ thing.other, {}, nullptr};
    // Without symbols the call stands for the function that made it.
    if (!IsLoss(thing.rule) && thing.place != 0) {
      shown.blame.emplace();
      shown.blame->function.module = "prog";
      shown.blame->function.function = std::to_string(thing.place);
    }
    finder.Add(shown, thing.rule);
  }
  finder.Find(&run);
  return run.defects.size();
}

std::size_t CountDefects(const std::vector<harness::TrialFinding>& findings) {
  std::vector<WrongThing> things;
  for (const harness::TrialFinding& finding : findings) {
    const bool lost = IsLoss(finding.rule) || finding.where_key == 0;
    things.push_back({finding.rule, finding.kind, lost ? finding.acquired_key : finding.where_key, lost ? 0 : finding.other_key});
  }
  return CountDefects(things);
}

std::size_t CountLosses(const harness::Ledger& ledger) {
  std::vector<WrongThing> things;
  for (const harness::Object& object : ledger.objects) {
    const bool lost = object.state == harness::State::Live || (object.state == harness::State::Orphaned && !object.own_context);
    if (!lost || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent || object.kind == driver::Kind::ContextStackEntry) continue;
    things.push_back({Rule::Leak, object.kind, PlaceOf(object.acquired)});
  }
  return CountDefects(things);
}

std::size_t CountViolations(const harness::Ledger& ledger) {
  std::vector<WrongThing> things;
  for (const harness::Violation& violation : ledger.violations) {
    things.push_back({violation.rule, violation.kind, PlaceOf(violation.where), PlaceOf(violation.other)});
  }
  return CountDefects(things);
}

}  // namespace cuaudit::testing
