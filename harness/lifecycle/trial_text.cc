// SPDX-License-Identifier: MIT
#include "harness/lifecycle/trial_text.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "harness/ledger/rules.h"
#include "harness/lifecycle/command_line.h"
#include "harness/sweep/aggregate.h"
#include "harness/sweep/plan_file.h"
#include "harness/sweep/shell_quote.h"
#include "harness/sweep/site_text.h"

namespace cuaudit::harness {
namespace {

// The way from DriverRef or from the drop-in's exports to the record; it lies in the program's own file where cuaudit is linked statically.
bool IsGate(const report::Frame& frame) {
  constexpr std::string_view kFiles[] = {"generated/driver_methods.inc",   "faults/shim/",       "faults/journal/", "faults/interpose/",
                                         "harness/lifecycle/diversion.cc", "lifecycle/block.cc", "cuaudit/mark.h"};
  if (frame.module == "libcuda.so.1" || frame.module.starts_with("libcuaudit.so")) return true;
  for (const std::string_view file : kFiles) {
    if (frame.file.find(file) != std::string::npos) return true;
  }
  return frame.function.starts_with("cuaudit::driver::DriverRef::") || frame.function.starts_with("cuaudit::faults::") ||
         frame.function.find(" cuaudit::faults::Gate::") != std::string::npos;
}

// What a failed expectation leaves in the results of its test.
bool IsGoogleTests(const std::vector<report::Frame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const report::Frame& frame) {
    return frame.function.find("testing::internal::AssertHelper::operator=") != std::string::npos ||
           frame.function.find("testing::UnitTest::AddTestPartResult") != std::string::npos;
  });
}

// Where the harness calls a step. Inlined frames have bare names, so their files tell.
bool CallsTheStep(const report::Frame& frame) {
  return frame.function.find("cuaudit::detail::Call") != std::string::npos || frame.function.starts_with("cuaudit::harness::") ||
         frame.file.find("cuaudit/lifecycle.h") != std::string::npos || frame.file.find("harness/lifecycle/") != std::string::npos;
}

// The standard library's way from a std::function to what it holds.
bool IsFunctionCall(const report::Frame& frame) {
  return frame.file.ends_with("/bits/std_function.h") || frame.file.ends_with("/bits/invoke.h") ||
         frame.function.starts_with("std::function<");
}

// From the program's innermost frame to the last one before the step was called.
std::vector<std::string> Lines(const std::vector<report::Frame>& frames) {
  std::vector<std::string> lines;
  const auto first = std::find_if_not(frames.begin(), frames.end(), IsGate);
  auto last = std::find_if(first, frames.end(), CallsTheStep);
  while (last != first && last != frames.end() && IsFunctionCall(*std::prev(last))) --last;
  for (auto at = first; at != last; ++at) {
    const report::Frame& frame = *at;
    std::string line = frame.function;
    if (line.empty()) {
      char offset[32];
      std::snprintf(offset, sizeof(offset), "+0x%llx", static_cast<unsigned long long>(frame.offset));
      line = frame.module + offset;
    }
    if (!frame.file.empty()) {
      line.append(" ").append(frame.file, frame.file.rfind('/') + 1).append(":").append(std::to_string(frame.line));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Finding FromText(const TrialFindingText& text) {
  Finding finding;
  finding.rule = Name(text.rule);
  finding.title = Row(text.rule).title;
  finding.kind = text.apart.empty() ? KindName(text) : std::string_view(text.apart);
  finding.count = text.count;
  finding.bytes = text.bytes;
  finding.acquired = text.acquired->call;
  finding.acquired_stack = Lines(text.acquired->stack);
  finding.where = text.where->call;
  finding.where_stack = Lines(text.where->stack);
  if (!text.other->call.empty()) finding.detail = "collides with " + text.other->call;
  return finding;
}

}  // namespace

std::string ReplayLine(const std::string& lifecycle, const std::vector<std::string>& faults) {
  if (lifecycle.empty()) return CommandLine();
  std::string line = "CUAUDIT_CASE=" + ShellQuote(lifecycle);
  std::string texts;
  for (const std::string& fault : faults) texts.append(texts.empty() ? "" : ";").append(fault);
  if (!texts.empty()) line += " CUAUDIT_FAULT='" + texts + "'";
  return line.append(" ").append(CommandLine());
}

void FindingTexts::Put(Finding finding, std::uint64_t group, Shown* shown, std::vector<Finding>* to) {
  // With fewer faults the same finding came already: what failed later has no part in it.
  std::uint64_t key = HashNumber(kHashSeed, group);
  auto known = shown->index.find(key);
  for (std::size_t i = 1; i < finding.faults.size() && known == shown->index.end(); ++i) {
    key = HashText(finding.faults[i], key);
    known = shown->index.find(key);
  }
  if (known == shown->index.end()) {
    shown->index.emplace(key, to->size());
    finding.fingerprint = fingerprints_.Claim(finding.fingerprint);
    to->push_back(std::move(finding));
    return;
  }
  Finding& first = (*to)[known->second];
  ++first.trials;
  first.count = std::max(first.count, finding.count);
  first.bytes = std::max(first.bytes, finding.bytes);
}

// Places are the same for the life of a process, and opening its debug information costs more than many sweeps.
SiteTexts& FindingTexts::Sites() const {
  thread_local SiteTexts sites;
  return sites;
}

void FindingTexts::Complete(Finding finding, const TrialFindingText& text, const TrialVerdict& verdict, const report::Acquired& site,
                            const std::vector<std::string>& faults, Shown* shown, std::vector<Finding>* to) {
  const std::optional<report::Fault> fault = faults.empty() ? std::nullopt : FaultText(faults.front(), site);
  finding.faults = faults;
  finding.fault_stack = Lines(site.stack);
  finding.replay = ReplayLine(lifecycle_, faults);
  finding.fingerprint = Fingerprint(text, fault);
  Put(std::move(finding), GroupKey(text, fault, verdict.fault_key), shown, to);
}

void FindingTexts::Add(const TrialVerdict& verdict, const faults::JournalView& journal, const std::vector<std::string>& faults,
                       Audit* audit) {
  SiteTexts& sites = Sites();
  const report::Acquired site = sites.Text(journal, verdict.fault_site, verdict.fault_key);
  const std::vector<TrialFindingText> texts = Texts(verdict.findings, journal, &sites);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Finding finding = FromText(texts[i]);
    if (i < verdict.details.size() && !verdict.details[i].empty()) finding.detail = verdict.details[i];
    Complete(std::move(finding), texts[i], verdict, site, faults, &findings_, &audit->findings);
  }
  for (const StepFinding& one : verdict.step_findings) {
    TrialFindingText text;
    text.rule = one.rule;
    text.apart = one.kind;
    text.count = one.count;
    text.bytes = one.bytes;
    Finding finding = FromText(text);
    finding.detail = one.detail;
    Complete(std::move(finding), text, verdict, site, faults, &findings_, &audit->findings);
  }
  for (const TrialFindingText& text : Texts(verdict.notes, journal, &sites)) {
    Complete(FromText(text), text, verdict, site, faults, &notes_, &audit->notes);
  }
}

std::size_t FindingTexts::AddHost(const std::vector<TrialFinding>& findings, const faults::JournalView& host, const TrialVerdict& verdict,
                                  const faults::JournalView& journal, const std::vector<std::string>& faults, Audit* audit) {
  SiteTexts& sites = Sites();
  const report::Acquired site = sites.Text(journal, verdict.fault_site, verdict.fault_key);
  const std::vector<TrialFindingText> texts = Texts(findings, host, &sites);
  std::size_t added = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (IsGoogleTests(texts[i].acquired->stack)) {
      Count(Reason::GoogleTestBlocks, 1, &audit->skipped);
      continue;
    }
    Finding finding = FromText(texts[i]);
    finding.detail = findings[i].detail;
    Complete(std::move(finding), texts[i], verdict, site, faults, &findings_, &audit->findings);
    ++added;
  }
  return added;
}

}  // namespace cuaudit::harness
