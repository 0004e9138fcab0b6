// SPDX-License-Identifier: MIT
// trial_text.h: what a trial came to as findings for a person: names, call stacks, and the line that shows it again.
//
//   Owns      its groups. What has been resolved is kept for the thread: the same places come back in the next sweep.
//   Threads   not thread-safe; several may be used by several threads.
//   Errors    none: what has no name keeps module and offset.
//   Faults    makes no driver calls.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/lifecycle/trial_verdict.h"
#include "harness/sweep/fingerprint.h"
#include "harness/sweep/site_text.h"
#include "harness/sweep/trial.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

// Equal findings of several trials are one, which keeps the first one's faults.
class FindingTexts {
 public:
  // `lifecycle`: its name, for the line that shows a finding again; empty: the whole test shows it.
  explicit FindingTexts(std::string lifecycle) : lifecycle_(std::move(lifecycle)) {}

  // `faults` empty: of a fault-free run.
  void Add(const TrialVerdict& verdict, const faults::JournalView& journal, const std::vector<std::string>& faults, Audit* audit);
  // Resources of the host: their places lie in the journal of the host drop-in, that of the fault (of `verdict`) in the trial's. What
  // GoogleTest keeps of an expectation that failed is no loss, and is counted apart. Answers how many findings there were.
  std::size_t AddHost(const std::vector<TrialFinding>& findings, const faults::JournalView& host, const TrialVerdict& verdict,
                      const faults::JournalView& journal, const std::vector<std::string>& faults, Audit* audit);

 private:
  struct Shown {
    std::unordered_map<std::uint64_t, std::size_t> index;
  };
  SiteTexts& Sites() const;
  void Complete(Finding finding, const TrialFindingText& text, const TrialVerdict& verdict, const report::Acquired& site,
                const std::vector<std::string>& faults, Shown* shown, std::vector<Finding>* to);
  void Put(Finding finding, std::uint64_t group, Shown* shown, std::vector<Finding>* to);

  std::string lifecycle_;
  FingerprintSet fingerprints_;
  Shown findings_, notes_;
};

// CUAUDIT_CASE='pool' CUAUDIT_FAULT='...' and the command line of this process, as a shell reads it.
std::string ReplayLine(const std::string& lifecycle, const std::vector<std::string>& faults);

}  // namespace cuaudit::harness
