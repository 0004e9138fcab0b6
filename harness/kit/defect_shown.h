// SPDX-License-Identifier: MIT
// defect_shown.h: what a CallList shows on the simulated driver, judged by the engine that judges programs and lifecycles.
//
//   Owns      the names of places, which all lists share.
//   Threads   one thread.
//   Errors    Status: there is no world.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "faults/driver/kinds.h"
#include "harness/kit/call_list.h"
#include "harness/process/status.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {

// What is wrong, without places.
struct Wrong {
  Rule rule{};
  driver::Kind kind{};
  std::uint64_t count = 0;

  friend bool operator==(const Wrong&, const Wrong&) = default;
};

struct DefectShown {
  std::vector<Wrong> wrong;                                 // each rule and kind once, in the order of rule and kind
  std::array<std::uint64_t, driver::kKindCount> left = {};  // objects that the run without faults leaves
  std::vector<const Step*> unlike;  // calls that fail, without a fault of their own, and did not when they were recorded
};

// Puts together what has the same rule and kind.
std::vector<Wrong> Together(std::vector<Wrong> wrong);

class DefectJudge {
 public:
  explicit DefectJudge(const JudgeOptions& options) : options_(options) {}

  Result<DefectShown> Look(const CallList& list);
  std::size_t looks() const noexcept { return looks_; }

 private:
  Result<DefectShown> LookAtTrial(const CallList& list);
  Result<DefectShown> LookWithoutFaults(const CallList& list);

  const JudgeOptions options_;
  SiteTexts sites_;
  std::size_t looks_ = 0;
};

}  // namespace cuaudit::harness
