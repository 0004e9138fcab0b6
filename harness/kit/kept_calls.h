// SPDX-License-Identifier: MIT
// kept_calls.h: a CallList of which some calls are left out, and with them what cannot be made any more.
//
//   Owns      the list. Steps of it are pointed at, so it stays where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "harness/kit/call_list.h"

namespace cuaudit::harness {

// Marks the calls of a list that are kept, in one order: of each stage first its steps, then its rest. Failing calls are always kept.
using Kept = std::vector<bool>;

class KeptCalls {
 public:
  explicit KeptCalls(CallList list);
  KeptCalls(const KeptCalls&) = delete;
  KeptCalls& operator=(const KeptCalls&) = delete;

  const CallList& list() const noexcept { return list_; }
  const std::vector<const Step*>& steps() const noexcept { return steps_; }  // in the order of Kept

  CallList Build(const Kept& kept) const;

  // Leaves out what uses a variable that nobody writes any more. Answers false when a failing call does.
  bool Close(Kept* kept) const;

  // The threads and the marked cycles that make calls; 0: outside of cycles.
  std::set<std::uint32_t> Threads() const;
  std::set<std::uint32_t> Cycles() const;

 private:
  const CallList list_;
  std::vector<const Step*> steps_;
  std::set<int> written_;  // variables that some call writes
};

}  // namespace cuaudit::harness
