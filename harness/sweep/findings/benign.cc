// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/benign.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "faults/driver/call_id.h"
#include "faults/plan/fault.h"
#include "harness/ledger/rules.h"
#include "harness/sweep/plan/make_plan.h"

namespace cuaudit::harness {
namespace {

enum class Covers : std::uint8_t { No, Yes, Unknown };

// Whether a declaration covers the fault `text` when it hits at `site`. Unknown: it names a function, and the site has no call stack.
Covers CoversFault(const Benign& benign, const std::string& text, const report::Acquired& site) {
  if (site.call != benign.call) return Covers::No;
  if (benign.occurrence != 0 && faults::WordsOf(text).where != "#" + std::to_string(benign.occurrence)) return Covers::No;
  if (benign.function.empty()) return Covers::Yes;
  if (site.stack.empty()) return Covers::Unknown;
  const bool called = std::any_of(site.stack.begin(), site.stack.end(), [&](const report::Frame& frame) {
    return frame.function == benign.function && (benign.module.empty() || frame.module == benign.module);
  });
  return called ? Covers::Yes : Covers::No;
}

// The declaration that covers the fault; null for none.
const Benign* FindBenign(const std::vector<Benign>& declared, const std::string& text, const report::Acquired& site) {
  const auto found =
      std::find_if(declared.begin(), declared.end(), [&](const Benign& benign) { return CoversFault(benign, text, site) == Covers::Yes; });
  return found == declared.end() ? nullptr : &*found;
}

// The notes of the trial decide the verdict.
Verdict VerdictWithoutFindings(const TrialResult& trial) {
  Verdict gravest = VerdictOf(trial.said);
  for (const TrialFindingText& note : trial.notes) gravest = Graver(gravest, VerdictOf(note.rule).value_or(gravest));
  return gravest;
}

}  // namespace

Result<Benign> ParseBenign(const std::string& text) {
  const std::string expected = "'" + text + "': expected ";
  Benign benign;
  benign.text = text;
  const std::size_t at = text.find('@');
  const std::string counted = text.substr(0, at);
  const std::size_t hash = counted.find('#');
  benign.call = counted.substr(0, hash);
  bool no_number = false;
  if (hash != std::string::npos) {
    const char* const last = counted.data() + counted.size();
    const auto [end, error] = std::from_chars(counted.data() + hash + 1, last, benign.occurrence);
    no_number = error != std::errc() || end != last || benign.occurrence == 0;
  }
  if (driver::FindBase(benign.call) == driver::kBaseCount || no_number) {
    return Status(Exit::Usage, expected +
                                   "a driver entry point without version suffix, such as cuMemPoolCreate or cuMemPoolCreate#2, then "
                                   "@function or @module!function");
  }
  if (at == std::string::npos) return benign;
  const std::string place = text.substr(at + 1);
  const std::size_t mark = place.find('!');
  if (mark != std::string::npos) benign.module = place.substr(0, mark);
  benign.function = mark == std::string::npos ? place : place.substr(mark + 1);
  if (benign.function.empty() || (mark != std::string::npos && benign.module.empty())) {
    return Status(Exit::Usage, expected + "@function or @module!function after the call");
  }
  return benign;
}

DeclaredFaults DeclaredOf(const std::vector<Benign>& declared, const std::vector<std::string>& faults) {
  DeclaredFaults of;
  for (std::size_t i = 0; !declared.empty() && i < faults.size(); ++i) {
    const report::Acquired site = {CallInText(faults[i]), {}};
    for (const Benign& benign : declared) {
      const Covers covers = CoversFault(benign, faults[i], site);
      if (covers != Covers::No) (covers == Covers::Yes ? of.surely : of.perhaps) |= std::uint64_t{1} << i;
    }
  }
  return of;
}

void ApplyBenign(const std::vector<Benign>& declared, TrialResult* trial) {
  if (!trial->fired || declared.empty()) return;
  const std::size_t before = trial->findings.size();
  std::erase_if(trial->findings, [&](const TrialFindingText& finding) {
    const auto is_declared = [&](const std::string& fault) { return FindBenign(declared, fault, finding.where) != nullptr; };
    return finding.rule == Rule::Swallowed && std::any_of(trial->faults.begin(), trial->faults.end(), is_declared);
  });
  if (trial->findings.empty() && before != 0) trial->verdict = VerdictWithoutFindings(*trial);
  if (trial->verdict == Verdict::NotExercised) {
    trial->missed = Missed::Vanished;
    trial->fired = false;
    return;
  }
  std::vector<PlaceText> sites = {trial->fault_site};
  sites.insert(sites.end(), trial->later_sites.begin(), trial->later_sites.end());
  for (std::size_t i = 0; i < std::min(sites.size(), trial->faults.size()); ++i) {
    const Benign* const benign = FindBenign(declared, trial->faults[i], sites[i]);
    if (benign != nullptr) trial->benign.push_back(static_cast<std::size_t>(benign - declared.data()));
  }
  // With an undeclared fault in the list, or with other findings, the trial says more than whether a benign fault was absorbed.
  if (trial->benign.size() != sites.size() || !trial->findings.empty()) return;
  if (trial->said == Said::Success) {
    trial->verdict = Verdict::Benign;
    return;
  }
  TrialFindingText finding;
  finding.rule = Rule::BenignFailed;
  finding.count = 1;
  finding.detail = declared[trial->benign.front()].text;
  finding.where = trial->fault_site;
  finding.where_key = trial->fault_key;
  AddFindings({std::move(finding)}, trial);
}

std::vector<TrialFindingText> NeverFired(const std::vector<Benign>& declared, const std::map<std::size_t, TrialResult>& results) {
  std::vector<TrialFindingText> findings;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const bool hit = std::any_of(results.begin(), results.end(), [&](const auto& row) {
      const TrialResult& trial = row.second;
      return trial.fired && std::find(trial.benign.begin(), trial.benign.end(), i) != trial.benign.end();
    });
    if (hit) continue;
    TrialFindingText finding;
    finding.rule = Rule::BenignNeverFired;
    finding.count = 1;
    finding.detail = finding.apart = declared[i].text;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace cuaudit::harness
