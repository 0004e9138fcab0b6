// SPDX-License-Identifier: MIT
#include "harness/sweep/findings/shrink.h"

#include <algorithm>

#include "harness/sweep/plan/make_plan.h"
#include "harness/sweep/plan/plan_file.h"

namespace cuaudit::harness {
namespace {

constexpr std::uint32_t kEveryLength = 16;  // longer bursts are halved

std::vector<std::string> ShorterFaults(const std::string& text) {
  faults::Fault fault;
  if (faults::ParseFault(text, &fault).expected != nullptr) return {};
  const bool burst = fault.how == faults::How::Burst && fault.burst > 1;
  if (!burst && fault.how != faults::How::Persist) return {};
  std::vector<std::string> shorter;
  const std::uint32_t length = burst ? fault.burst : 2;
  fault.how = faults::How::Refuse;
  fault.burst = 1;
  shorter.push_back(TextOf(fault));
  fault.how = faults::How::Burst;
  if (length > kEveryLength) {
    fault.burst = length / 2;
    shorter.push_back(TextOf(fault));
  } else {
    for (fault.burst = 2; fault.burst < length; ++fault.burst) shorter.push_back(TextOf(fault));
  }
  return shorter;
}

}  // namespace

bool CanShrink(const std::vector<std::string>& faults) {
  return faults.size() > 1 || std::any_of(faults.begin(), faults.end(), [](const std::string& one) { return !ShorterFaults(one).empty(); });
}

std::vector<FaultList> SmallerLists(const FaultList& list) {
  std::vector<FaultList> smaller;
  for (std::size_t i = 0; list.faults.size() > 1 && i < list.faults.size(); ++i) {
    FaultList one = list;
    // Drops the last fault first, because most often the earlier ones alone suffice.
    const auto at = static_cast<std::ptrdiff_t>(list.faults.size() - 1 - i);
    one.faults.erase(one.faults.begin() + at);
    one.sites.erase(one.sites.begin() + at);
    smaller.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < list.faults.size(); ++i) {
    for (std::string& shorter : ShorterFaults(list.faults[i])) {
      FaultList one = list;
      one.faults[i] = std::move(shorter);
      smaller.push_back(std::move(one));
    }
  }
  return smaller;
}

}  // namespace cuaudit::harness
