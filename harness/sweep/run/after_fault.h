// SPDX-License-Identifier: MIT
// after_fault.h: how a trial went on after its last fault, call by call, and which calls of the fault-free run release what was held.
//
//   Owns      plain values; places share their text.
//   Threads   one thread.
//   Errors    none. What cannot be told is left out.
//
// A report shows both side by side, so that a reader sees which release is missing. The fault-free side begins at the call that the first
// fault of the trial hits: what is held there must be given back from there on, whatever fails later. A fault that names no call of the
// fault-free run (a host allocation, a call that only some runs make) has no such side.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/sweep/run/observation.h"
#include "harness/sweep/run/site_text.h"
#include "harness/verdict/rehearsed.h"

namespace cuaudit::harness {

struct AfterFault {
  struct Step {
    PlaceText place;
    std::int32_t result = 0;  // CUresult
  };
  std::vector<Step> steps;             // the call that the last fault hit, and those after it
  std::uint64_t more = 0;              // number of calls after those
  std::vector<std::uint32_t> held;     // calls of the fault-free run, by number from 0, that release what is held
  std::vector<std::uint32_t> missing;  // those of them that release what this trial lost
};

// Many trials go on in the same way: equal ones share their memory.
class AfterFaults {
 public:
  std::shared_ptr<const AfterFault> Share(AfterFault after);

 private:
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const AfterFault>> known_;  // by a hash
};

// The calls of a fault-free run by number: in the order of their begin, and those of several threads, which take turns as they like, by
// place.
class FaultFreeCalls {
 public:
  // Borrows the run, which must outlive it.
  explicit FaultFreeCalls(const Rehearsed& rehearsal);

  std::span<const std::uint32_t> records() const noexcept { return calls_; }  // indices in the journal
  // The call that the fault with this text hits.
  std::optional<std::uint32_t> Hit(const std::string& fault) const;
  // What is held when that call begins and released later: number of the releasing call, and what it releases. In the order of the calls.
  struct Release {
    std::uint32_t call = 0;
    driver::Kind kind{};
    std::uint64_t acquired_key = 0;
  };
  std::vector<Release> HeldAt(std::uint32_t call) const;

 private:
  Evidence run_;
  std::vector<std::uint32_t> calls_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_begin_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> by_name_;  // base and occurrence
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> by_site_;  // SiteKey and turn
};

// `findings` are those of the trial. Nothing when no fault hit a call.
[[nodiscard]] std::optional<AfterFault> TellAfterFault(const FaultFreeCalls& calls, const Observation& trial,
                                                       std::span<const std::string> faults, std::span<const TrialFindingText> findings,
                                                       SiteTexts* sites);

}  // namespace cuaudit::harness
