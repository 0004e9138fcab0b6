// SPDX-License-Identifier: MIT
#include "harness/kit/wanted_defect.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "reports/defect_words.h"

namespace cuaudit::harness {
namespace {

bool IsOfHost(driver::Kind kind) {
  switch (kind) {
    case driver::Kind::HostHeap:
    case driver::Kind::FileDescriptor:
    case driver::Kind::Thread:
    case driver::Kind::HostMapping:
    case driver::Kind::DlopenReference:
    case driver::Kind::Mutex:
    case driver::Kind::Block:
      return true;
    default:
      return false;
  }
}

// Rules about what a program says, how it ends, or how it goes on. Calls alone do not show them.
bool IsOfProgram(Rule rule) {
  switch (rule) {
    case Rule::Crash:
    case Rule::Abort:
    case Rule::Hang:
    case Rule::NotRecovered:
    case Rule::Swallowed:
    case Rule::Spurious:
    case Rule::WrongCode:
    case Rule::OutputWritten:
    case Rule::BenignFailed:
    case Rule::BenignNeverFired:
    case Rule::MutexFreed:
    case Rule::MutexLocked:
    case Rule::HandedOutTwice:
      return true;
    default:
      return false;
  }
}

std::vector<std::string> FaultsOfFinding(const report::Finding& finding) {
  std::vector<std::string> faults;
  if (finding.fault) faults.push_back(finding.fault->text);
  for (const report::Fault& fault : finding.then) faults.push_back(fault.text);
  return faults;
}

Wrong WrongOf(const report::Run& run, const report::Finding& finding) {
  const driver::Kind kind = driver::KindFromName(finding.kind);
  if (finding.rule != Rule::Growth) return {finding.rule, kind, finding.count};
  // What grows with each cycle is left by each.
  const auto growth = run.per_cycle.find(finding.kind);
  const double each = growth == run.per_cycle.end() ? 1 : growth->second;
  return {Rule::LeftAtExit, kind, static_cast<std::uint64_t>(std::max(1.0, std::round(each)))};
}

}  // namespace

std::vector<Wrong> WrongIn(const report::Run& run, const std::vector<std::string>& faults) {
  std::vector<Wrong> wrong;
  for (const report::Finding& finding : run.findings) {
    if (FaultsOfFinding(finding) == faults) wrong.push_back(WrongOf(run, finding));
  }
  return Together(std::move(wrong));
}

Status TakeCounts(const report::Run& replayed, WantedDefect* defect) {
  const std::vector<Wrong> shown = WrongIn(replayed, defect->faults);
  for (Wrong& one : defect->wanted) {
    const auto same = [&](const Wrong& other) { return other.rule == one.rule && other.kind == one.kind; };
    const auto found = std::find_if(shown.begin(), shown.end(), same);
    if (found == shown.end()) {
      return {Exit::Environment, "the program does not show the defect any more: expected " + InWords(*defect, defect->wanted) +
                                     ", found " + InWords(*defect, shown)};
    }
    one.count = found->count;
  }
  return {};
}

Rule RuleInReport(const WantedDefect& defect, const Wrong& wrong) {
  return wrong.rule == Rule::LeftAtExit && defect.root.rule == Rule::Growth ? Rule::Growth : wrong.rule;
}

bool IsByPlace(const WantedDefect& defect) {
  return std::any_of(defect.wanted.begin(), defect.wanted.end(), [](const Wrong& one) { return one.rule == Rule::Deficit; });
}

std::string InWords(const WantedDefect& defect, const std::vector<Wrong>& wrong) {
  std::string text;
  for (const Wrong& one : wrong) {
    text += (text.empty() ? "" : ", ") + std::string(words::Name(RuleInReport(defect, one))) + " " + std::to_string(one.count) + " " +
            std::string(driver::Name(one.kind));
  }
  return text.empty() ? "nothing" : text;
}

Result<WantedDefect> FindDefect(const report::Audit& audit, const std::string& fingerprint, const std::string& source) {
  for (const report::Case& one : audit.cases) {
    for (const report::Run& run : one.runs) {
      const auto same = [&](const report::Defect& defect) { return defect.fingerprint == fingerprint; };
      const auto found = std::find_if(run.defects.begin(), run.defects.end(), same);
      if (found == run.defects.end()) continue;
      WantedDefect wanted;
      wanted.run = run;
      wanted.defect = *found;
      wanted.root = report::RootOf(run, *found);
      wanted.faults = FaultsOfFinding(wanted.root);
      for (const report::Member& member : found->members) {
        for (const std::size_t index : member.findings) {
          const report::Finding& finding = run.findings[index];
          if (FaultsOfFinding(finding) != wanted.faults) continue;
          const Wrong wrong = WrongOf(run, finding);
          std::string name = std::string(words::Name(finding.rule)) + " " + std::to_string(finding.count);
          if (!finding.kind.empty()) name += " " + finding.kind;
          if (IsOfProgram(finding.rule)) {
            wanted.left_out.push_back(name + ": the rule is about what the program says or how it ends, which driver calls do not show");
          } else if (IsOfHost(wrong.kind)) {
            wanted.left_out.push_back(name + ": a resource of the host, which driver calls do not make");
          } else {
            wanted.wanted.push_back(wrong);
          }
        }
      }
      wanted.wanted = Together(std::move(wanted.wanted));
      if (wanted.wanted.empty()) {
        return Status(Exit::Environment, fingerprint + ": no kit: " + (wanted.left_out.empty() ? "no finding" : wanted.left_out.front()));
      }
      for (const std::string& text : wanted.faults) {
        if (faults::HostFaultOf(std::string_view(text)) != nullptr) {
          return Status(Exit::Environment, fingerprint + ": no kit: what fails is " + text + ", no driver call");
        }
      }
      return wanted;
    }
  }
  return Status(Exit::Usage, source + ": expected a defect with the fingerprint '" + fingerprint + "'");
}

}  // namespace cuaudit::harness
