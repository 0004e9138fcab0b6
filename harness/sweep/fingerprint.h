// SPDX-License-Identifier: MIT
// fingerprint.h: by what two findings are the same: within one report, and from one build of the program to the next.
//
//   Threads   pure.
//   Faults    makes no driver calls.
//
// Both are made of the rule, the kind, the place where the object was acquired, the place where it shows, and the fault: call, place, code
// and how. Occurrence is left out: the third turn of a loop is the same finding as the first. They differ in what a place is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/sweep/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Places by SiteKey: two lines of one function are two places. Good for one build of the program.
std::uint64_t GroupKey(const TrialFindingText& finding, const std::optional<report::Fault>& fault, std::uint64_t fault_key);
// The same with one more fault after it; of `key`, which is that without it.
std::uint64_t AddFault(std::uint64_t key, const report::Fault& fault, std::uint64_t fault_key);

// "v1-" and 16 digits. A place is the call, and module and function of each frame, so that a rebuilt program keeps its fingerprints; a
// frame whose function is unknown is its module only.
std::string Fingerprint(const TrialFindingText& finding, const std::optional<report::Fault>& fault,
                        const std::vector<report::Fault>& then = {});

// Two places in one function have one fingerprint; within a report the second is "-2", the third "-3", in the order of the report.
class FingerprintSet {
 public:
  std::string Claim(const std::string& fingerprint);

 private:
  std::unordered_map<std::string, std::size_t> claimed_;
};

}  // namespace cuaudit::harness
