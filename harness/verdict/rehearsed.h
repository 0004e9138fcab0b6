// SPDX-License-Identifier: MIT
// rehearsed.h: tables of what a fault-free run left, held and did wrong, by place. Made once and used by every trial.
//
//   Owns      its tables. Borrows the ledger and the journal of the run, which must outlive it.
//   Threads   one thread: the tables that cost much are made at first use.
//
// A place is a call with its call stack (SiteKey). It is the same in every run of the program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "faults/driver/call_id.h"
#include "harness/ledger/kept_contexts.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

using Place = std::pair<driver::Kind, std::uint64_t>;  // kind of an object, and SiteKey of its acquisition
using PlaceCounts = std::map<Place, std::uint64_t>;
using ViolationCounts = std::map<std::tuple<Rule, driver::Kind, std::uint64_t, std::uint64_t>, std::uint64_t>;  // by both calls

// Number of objects of one kind from one place that a trial may leave.
struct Allowance {
  std::uint64_t live = 0;
  std::uint64_t orphaned = 0;
};
using Allowances = std::map<Place, Allowance>;

// The marks of one cycle of a run.
struct CycleMarks {
  bool begun = false;
  std::uint64_t end = 0;   // ticket of its end; 0: none
  std::uint64_t said = 0;  // the failure that it reported; 0: none
};
[[nodiscard]] CycleMarks MarksOf(const Evidence& run, std::uint32_t cycle);

struct RehearsedCycle : CycleMarks {
  std::map<std::uint64_t, std::uint64_t> failures;    // failed calls, by place
  std::map<driver::BaseId, std::uint64_t> successes;  // number of successful calls
  PlaceCounts held;                                   // driver objects alive when the cycle ended
};

class CountedPlaces;
class PutBack;
class RestoredSettings;
struct UsualCloses;

class Rehearsed {
 public:
  explicit Rehearsed(const Evidence& run);

  const Evidence& run() const noexcept { return run_; }
  const Allowances& left() const noexcept { return left_; }
  const ViolationCounts& violations() const noexcept { return violations_; }
  // Driver objects that were not released, graph nodes included.
  const PlaceCounts& driver_objects_left() const noexcept { return driver_objects_left_; }
  // Callers (CallerKey) of mappings that are kept to the end. Allocators map their pools there.
  const std::set<std::uint64_t>& pools() const noexcept { return pools_; }
  // Host resources that were released inside callbacks of the driver, by acquire site.
  const PlaceCounts& freed_by_destructors() const;
  // Where objects are released, by kind and acquire site. Of several places the first.
  const std::map<Place, Site>& releases() const noexcept { return releases_; }
  const std::vector<KeptContexts>& contexts() const noexcept { return contexts_; }
  const RehearsedCycle& cycle(std::uint32_t number) const;
  // Where counted things are taken and given back.
  const CountedPlaces& counted() const;
  // What functions change for a while.
  const PutBack& put_back() const;
  const RestoredSettings& restored_settings() const;
  // Where the change is undone that a finding is about; Empty: nobody noted that.
  Site put_back_at(const TrialFinding& finding) const;
  // Callers (CallerKey) of the calls that release null.
  const std::set<std::uint64_t>& null_releases() const noexcept { return null_releases_; }
  // What it does with descriptors.
  const UsualCloses& closes() const;
  // Places where contexts are pushed.
  const std::set<std::uint64_t>& pushes() const noexcept { return pushes_; }
  // Entries left on context stacks of which the call stacks do not tell whether a pop is owed (Restored::Perhaps).
  const ViolationCounts& entries_left() const;
  // The first call of each call stack.
  const std::vector<Site>& call_stacks() const noexcept { return call_stacks_; }

 private:
  Evidence run_;
  Allowances left_;
  ViolationCounts violations_;
  PlaceCounts driver_objects_left_;
  std::set<std::uint64_t> pools_;
  std::map<Place, Site> releases_;
  std::vector<KeptContexts> contexts_;
  std::set<std::uint64_t> null_releases_;
  std::set<std::uint64_t> pushes_;
  std::vector<Site> call_stacks_;
  mutable std::optional<PlaceCounts> freed_by_destructors_;
  mutable std::map<std::uint32_t, RehearsedCycle> cycles_;
  mutable std::shared_ptr<const CountedPlaces> counted_;
  mutable std::shared_ptr<const PutBack> put_back_;
  mutable std::shared_ptr<const RestoredSettings> restored_settings_;
  mutable std::shared_ptr<const UsualCloses> closes_;
  mutable std::optional<ViolationCounts> entries_left_;
};

// A table that one trial uses up. Only entries that are asked for are copied.
template <typename Table>
class Remainder {
 public:
  explicit Remainder(const Table* table) : table_(table) {}  // null: an empty table
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

// True for a call that releases null where it needs a handle.
[[nodiscard]] bool ReleasesNull(const faults::Record& record);

// False for what nobody releases: the driver's own, and graph nodes and the like, which end with their parent.
[[nodiscard]] bool IsOwed(const Object& object);

// True for what is left of these. False for parts of other objects, and for entries left on a context stack, which have a rule of their
// own.
[[nodiscard]] bool IsOwnLeak(const Object& object);

// The contexts that are left at the end.
[[nodiscard]] std::vector<KeptContexts> ContextsLeft(const Ledger& ledger);

// True for a driver object that does not end with a parent object.
[[nodiscard]] bool IsLoneDriverObject(const Object& object);

// True for an object acquired before `ticket` and neither released nor orphaned by then.
[[nodiscard]] bool IsHeldAt(const Object& object, std::uint64_t ticket);

}  // namespace cuaudit::harness
