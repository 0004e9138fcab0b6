// SPDX-License-Identifier: MIT
// folding.h: an unfinished fold, which can be continued and copied. The common beginning of many journals is folded only once.
//
//   Owns      the ledger under construction and the accounts of all processes. Borrows each span of records for its own lifetime.
//   Units     tickets of the journal's clock.
//   Errors    records that do not come strictly after the earlier ones are declined, and nothing changes. Then Fold must see all records
//             at once.
//
// The cost of a copy depends on the size of the books and not on the number of records folded.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/ledger/process_fold.h"

namespace cuaudit::harness {

class Folding {
 public:
  enum class Notes : std::uint8_t { Everything, NoFacts };
  // `memory` is for the books while the fold lasts. What it answers, and copies of the fold, do not use it.
  explicit Folding(Notes notes = Notes::Everything, std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : books_(memory), current_(memory), notes_(notes), events_(memory) {}
  Folding(const Folding& other);
  Folding& operator=(const Folding&) = delete;

  // Folds more records. False when a call among them has not returned, or when a ticket is older than one already folded.
  [[nodiscard]] bool Add(std::span<const faults::Record> records);
  // Folds the last records, whose calls may not have returned, and ends the fold. Empty when a ticket is too old.
  [[nodiscard]] std::optional<Ledger> Finish(std::span<const faults::Record> records);

 private:
  struct Event {
    std::uint64_t ticket = 0;
    const faults::Record* record = nullptr;
    bool returned = false;
  };

  bool Schedule(std::span<const faults::Record> records, bool whole);
  void Take(std::span<const faults::Record> records);
  void Apply(const Event& event);
  void DropSaidTwice();
  Site PlaceOf(std::uint64_t begin);
  void Misuse(const faults::Record& record);
  void Process(const faults::Record& record);
  ProcessFold& Open(std::uint32_t pid, std::unique_ptr<ProcessFold> process);
  ProcessFold& ProcessOf(std::uint32_t pid);
  const Graphs::Addresses& AddressesOf(const faults::Record& record) const;
  ProcessFold::Told ToldOf(const faults::Record& record) const;

  std::vector<std::span<const faults::Record>> given_;
  std::size_t given_count_ = 0;  // number of records
  std::uint64_t last_ticket_ = 0;
  Books books_;
  std::vector<std::unique_ptr<ProcessFold>> processes_;
  std::pmr::unordered_map<std::uint32_t, std::size_t> current_;
  std::uint32_t last_pid_ = 0;
  ProcessFold* last_ = nullptr;  // of the last record; null: ask `current_`
  bool begun_ = false;
  Notes notes_ = Notes::Everything;

  // Only for the records that are being added.
  std::pmr::vector<Event> events_;
  std::unordered_map<std::uint64_t, Graphs::Addresses> addresses_;     // by the begin ticket of the call
  std::unordered_map<std::uint64_t, const faults::Record*> contents_;  // content of the graph node that the call adds, by the same ticket
  std::unordered_map<std::uint64_t, std::vector<const faults::Record*>> told_;  // of other objects (told_objects.cc), by the same ticket
  std::unordered_map<std::uint64_t, Site> calls_;                               // by the same ticket; filled at the first proved misuse
};

}  // namespace cuaudit::harness
