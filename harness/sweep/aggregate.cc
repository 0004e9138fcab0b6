// SPDX-License-Identifier: MIT
#include "harness/sweep/aggregate.h"

#include <string.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "faults/driver/result.h"
#include "faults/plan/fault.h"
#include "harness/ledger/rules.h"
#include "harness/sweep/plan_file.h"

namespace cuaudit::harness {
namespace {

std::string TitleOf(const std::string& rule) {
  for (const RuleRow& row : kRules) {
    if (row.name == rule) return std::string(row.title);
  }
  return {};
}

report::Finding ToFinding(const TrialFindingText& text, const std::string& verdict) {
  report::Finding finding;
  finding.rule = text.rule;
  finding.title = TitleOf(text.rule);
  finding.kind = text.kind;
  finding.count = text.count;
  finding.bytes = text.bytes;
  finding.verdict = verdict;
  finding.acquired = text.acquired;
  finding.where = text.where.call;
  finding.where_stack = text.where.stack;
  return finding;
}

// Equal fingerprints become one entry that counts its trials.
class Collector {
 public:
  explicit Collector(std::vector<report::Finding>* findings) : findings_(findings) {
    for (std::size_t i = 0; i < findings->size(); ++i) index_.emplace((*findings)[i].fingerprint, i);
  }

  void Add(report::Finding finding) {
    const auto [at, fresh] = index_.emplace(finding.fingerprint, findings_->size());
    if (fresh) {
      findings_->push_back(std::move(finding));
    } else {
      ++(*findings_)[at->second].trials;
    }
  }

 private:
  std::vector<report::Finding>* findings_;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace

std::string ReproduceLine(const Reproduction& reproduction, std::span<const std::string> faults) {
  std::string line = faults.empty() ? reproduction.run : reproduction.replay;
  for (const std::string& fault : faults) line += " --fault '" + fault + "'";
  return line + " -- " + reproduction.program;
}

std::string Fingerprint(const TrialFindingText& finding, const std::optional<report::Fault>& fault, std::uint64_t fault_key) {
  std::uint64_t hash = HashText(finding.rule);
  hash = HashText(finding.kind, hash);
  hash = HashNumber(finding.acquired_key, hash);
  // A violation is where it shows; two uses of one dead object are two findings.
  hash = HashNumber(finding.where_key, hash);
  if (fault.has_value()) {
    hash = HashText(fault->call, hash);
    hash = HashNumber(fault_key, hash);
    hash = HashText(fault->code, hash);
    hash = HashText(fault->how, hash);
  }
  return "v1-" + Hex(hash);
}

std::optional<report::Fault> FaultText(const TrialResult& trial) {
  faults::Fault parsed;
  if (trial.faults.empty() || faults::ParseFault(trial.faults.front(), &parsed).expected != nullptr) return std::nullopt;
  report::Fault fault;
  char text[faults::kMaxFaultText];
  const std::string canonical(text, faults::FormatFault(parsed, text, sizeof(text)));
  fault.call = std::string(driver::Name(parsed.base));
  fault.occurrence = parsed.occurrence;
  fault.how = canonical.substr(canonical.rfind(',') + 1);
  fault.code = std::string(driver::ShortResultName(parsed.code));
  fault.text = canonical;
  fault.stack = trial.fault_site.stack;
  return fault;
}

void AddTrials(std::span<const TrialResult> trials, const Reproduction& reproduction, report::Run* run) {
  Collector findings(&run->findings);
  Collector notes(&run->notes);
  for (const TrialResult& trial : trials) {
    ++run->totals.trials;
    ++run->totals.verdicts[trial.verdict];
    if (trial.fired) ++run->totals.fired;
    const std::optional<report::Fault> fault = FaultText(trial);
    const std::string reproduce = ReproduceLine(reproduction, trial.faults);
    for (const TrialFindingText& text : trial.findings) {
      report::Finding finding = ToFinding(text, trial.verdict);
      finding.fault = fault;
      finding.fingerprint = Fingerprint(text, fault, trial.fault_key);
      finding.reproduce = reproduce;
      findings.Add(std::move(finding));
    }
    for (const TrialFindingText& text : trial.notes) {
      report::Finding note = ToFinding(text, trial.verdict);
      // What every run leaves has nothing to do with the fault of this one.
      const bool of_every_run = text.rule == Name(Rule::ProcessLifetime);
      if (!of_every_run) note.fault = fault;
      note.fingerprint = Fingerprint(text, note.fault, of_every_run ? 0 : trial.fault_key);
      note.reproduce = ReproduceLine(reproduction, of_every_run ? std::span<const std::string>() : trial.faults);
      if (of_every_run) note.verdict.clear();
      notes.Add(std::move(note));
    }
    if (!trial.fired) {
      report::Finding note;
      note.rule = "not_exercised";
      note.title = "the fault did not fire: the program did not make that call again";
      note.verdict = trial.verdict;
      note.fault = fault;
      TrialFindingText text;
      text.rule = note.rule;
      text.kind = trial.faults.empty() ? std::string() : trial.faults.front();
      note.fingerprint = Fingerprint(text, fault, 0);
      note.reproduce = reproduce;
      notes.Add(std::move(note));
    }
  }
}

void AddFaultFree(const Observation& run_seen, const Reproduction& reproduction, SiteTexts* sites, report::Run* run) {
  const Judgement judgement = Judge(Evidence(), run_seen.evidence(), false, JudgeOptions());
  Collector findings(&run->findings);
  Collector notes(&run->notes);
  const std::string reproduce = ReproduceLine(reproduction, {});
  const auto add = [&](const std::vector<TrialFindingText>& texts, bool level_finding) {
    for (TrialFindingText text : texts) {
      const bool left = text.rule == Name(Rule::Leak);
      if (left) text.rule = std::string(Name(Rule::ProcessLifetime));
      report::Finding finding = ToFinding(text, left ? std::string() : std::string(Name(judgement.verdict)));
      finding.fingerprint = Fingerprint(text, std::nullopt, 0);
      finding.reproduce = reproduce;
      (level_finding && !left ? findings : notes).Add(std::move(finding));
    }
  };
  add(Texts(judgement.findings, run_seen.journal, sites), true);
  add(Texts(judgement.notes, run_seen.journal, sites), false);
}

void DescribeRun(const Observation& run_seen, report::Run* run) {
  const faults::JournalHeader& header = run_seen.journal.header();
  const auto text = [](const char* field, std::size_t size) { return std::string(field, strnlen(field, size)); };
  switch (static_cast<faults::DriverKind>(header.driver_kind.load())) {
    case faults::DriverKind::None:
      break;
    case faults::DriverKind::Genuine:
      run->driver.kind = "real";
      run->driver.path = text(header.driver_path, sizeof(header.driver_path));
      break;
    case faults::DriverKind::Simulated:
      run->driver.kind = "sim";
      break;
  }
  const int version = header.driver_version.load();
  if (version > 0) run->driver.version = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  run->driver.device = text(header.device_name, sizeof(header.device_name));

  run->totals.calls = run_seen.ledger.calls;
  std::unordered_set<std::uint64_t> sites;
  for (const faults::Record& record : run_seen.journal.records()) {
    if (record.kind != faults::RecordKind::Call || (record.flags & faults::kNested) != 0) continue;
    sites.insert(SiteKey(run_seen.journal, RecordSite(record)));
  }
  run->totals.sites = sites.size();
  if (run_seen.ledger.unmodelled_calls != 0) run->totals.skipped["unmodelled calls"] = run_seen.ledger.unmodelled_calls;
  const std::uint32_t flags = run_seen.flags();
  const std::uint32_t unaudited = header.unknown_pointers.load();
  if (unaudited != 0) run->totals.skipped["entry points newer than the headers, passed through unaudited"] = unaudited;
  const auto inside = std::count_if(run_seen.ledger.objects.begin(), run_seen.ledger.objects.end(),
                                    [](const Object& object) { return object.driver_owned && object.state != State::Released; });
  if (inside > 0) run->totals.skipped["host resources that the driver keeps for itself"] = static_cast<std::uint64_t>(inside);
  if ((flags & faults::kHostProbesSkipped) != 0) run->totals.skipped["host probes: a sanitizer is in the process"] = 1;
  if ((flags & faults::kStacksDropped) != 0) run->totals.skipped["call stacks beyond the journal's table"] = 1;
  if ((flags & faults::kModulesDropped) != 0) run->totals.skipped["modules beyond the journal's table"] = 1;
}

}  // namespace cuaudit::harness
