// SPDX-License-Identifier: MIT
// rehearsed.h: what a fault-free run left, did wrong and held, as tables by place. Made once, asked by every trial.
//
//   Owns      its tables; borrows the ledger and the journal of the run, which must outlive it.
//   Threads   one thread: some tables are made when they are first asked for.
//   Faults    makes no driver calls.
//
// A place is a call with its call stack (SiteKey), the same in every run of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "harness/verdict/judge.h"

namespace cuaudit::harness {

using PlaceCounts = std::map<std::pair<driver::Kind, std::uint64_t>, std::uint64_t>;
using ViolationCounts = std::map<std::tuple<Rule, driver::Kind, std::uint64_t, std::uint64_t>, std::uint64_t>;  // by both calls

// Objects of one kind from one place that a trial may leave.
struct Allowance {
  std::uint64_t live = 0;
  std::uint64_t orphaned = 0;
};
using Allowances = std::map<std::pair<driver::Kind, std::uint64_t>, Allowance>;

struct KeptContexts {
  std::uint32_t pid = 0;
  std::size_t count = 0;
  const Object* context = nullptr;  // one of them; one whose release was refused, if any was
};

struct RehearsedCycle {
  bool begun = false;
  std::uint64_t end = 0;                              // ticket of its end, 0: none
  std::uint64_t said = 0;                             // the failure that it reported, 0: none
  std::map<std::uint64_t, std::uint64_t> failures;    // calls that failed, by place
  std::map<driver::BaseId, std::uint64_t> successes;  // calls that succeeded
  PlaceCounts held;                                   // driver objects when it ended
};

class Rehearsed {
 public:
  explicit Rehearsed(const Evidence& run);

  const Evidence& run() const noexcept { return run_; }
  const Allowances& left() const noexcept { return left_; }
  const ViolationCounts& violations() const noexcept { return violations_; }
  // Driver objects that were not released, nodes of graphs among them.
  const PlaceCounts& driver_objects_left() const noexcept { return driver_objects_left_; }
  // Callers (CallerKey) of mappings that are kept to the end: allocators keep their pools there.
  const std::set<std::uint64_t>& pools() const noexcept { return pools_; }
  // Host resources that were given back in callbacks of the driver, by where they were acquired.
  const PlaceCounts& freed_by_destructors() const;
  const std::vector<KeptContexts>& contexts() const;
  const RehearsedCycle& cycle(std::uint32_t number) const;

 private:
  Evidence run_;
  Allowances left_;
  ViolationCounts violations_;
  PlaceCounts driver_objects_left_;
  std::set<std::uint64_t> pools_;
  mutable std::optional<PlaceCounts> freed_by_destructors_;
  mutable std::optional<std::vector<KeptContexts>> contexts_;
  mutable std::map<std::uint32_t, RehearsedCycle> cycles_;
};

// What is left of a table while one trial uses it up. Only the entries that were asked for are copied.
template <typename Table>
class Remainder {
 public:
  explicit Remainder(const Table* table) : table_(table) {}  // null: nothing
  typename Table::mapped_type& operator[](const typename Table::key_type& key) {
    const auto [own, fresh] = touched_.try_emplace(key);
    if (!fresh || table_ == nullptr) return own->second;
    const auto known = table_->find(key);
    if (known != table_->end()) own->second = known->second;
    return own->second;
  }

 private:
  const Table* table_;
  Table touched_;
};

// Nodes die with their graph, and an entry left on a context stack is reported by its own rule.
[[nodiscard]] bool IsOwnLeak(const Object& object);

// Contexts that are left, process by process, in the order in which they first took anything.
[[nodiscard]] std::vector<KeptContexts> KeptContextsOf(const Ledger& ledger);

// A driver object that does not die with its parent.
[[nodiscard]] bool IsLoneDriverObject(const Object& object);

// Acquired before `ticket`, and neither released nor orphaned by then.
[[nodiscard]] bool IsHeldAt(const Object& object, std::uint64_t ticket);

}  // namespace cuaudit::harness
