// SPDX-License-Identifier: MIT
// fingerprint.h: keys by which findings are recognised as the same, within one report and from one build of the program to the next.
//
// Both keys cover the rule, the kind, the acquire place, the place where the finding shows, and the fault (call, place, code, how). The
// occurrence is left out: the third turn of a loop gives the same finding as the first. The keys differ in how they identify a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/sweep/run/trial.h"
#include "reports/run.h"

namespace cuaudit::harness {

// Identifies places by SiteKey, so two lines of one function differ. Valid for one build of the program.
std::uint64_t GroupKey(const TrialFindingText& finding, const std::optional<report::Fault>& fault, std::uint64_t fault_key);
// Adds one more fault to a key.
std::uint64_t AddFault(std::uint64_t key, const report::Fault& fault, std::uint64_t fault_key);

// "v1-" and 16 digits. A place is the call with the module and function of each frame, so a rebuilt program keeps its fingerprints. A frame
// with an unknown function is only its module.
std::string Fingerprint(const TrialFindingText& finding, const std::optional<report::Fault>& fault,
                        const std::vector<report::Fault>& then = {});

// Two places in one function have the same fingerprint. Within a report the second gets "-2", the third "-3", in the order of the report.
class FingerprintSet {
 public:
  std::string Claim(const std::string& fingerprint);

 private:
  std::unordered_map<std::string, std::size_t> claimed_;
};

}  // namespace cuaudit::harness
