// SPDX-License-Identifier: MIT
// folding.h: a fold under way, that can be gone on with and copied: what many journals begin with is folded once.
//
//   Owns      the ledger under construction and the accounts of all processes; borrows every record that it was given until it is gone.
//   Threads   a value; no shared state.
//   Units     tickets of the journal's clock.
//   Errors    records that do not simply come after those before are declined, and nothing has changed: Fold must see them all at once.
//   Faults    makes no driver calls.
//   Source    ours. A copy costs what the books hold, not what was folded to come there.
#pragma once

#include <cstdint>
#include <memory>
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
  explicit Folding(Notes notes = Notes::Everything) : notes_(notes) {}
  Folding(const Folding& other);
  Folding& operator=(const Folding&) = delete;

  // False: some call has not returned yet, or a ticket is older than one that was folded before.
  [[nodiscard]] bool Add(std::span<const faults::Record> records);
  // The last records, whose calls may never have returned. Nothing can be added any more. No value: some ticket is too old.
  [[nodiscard]] std::optional<Ledger> Finish(std::span<const faults::Record> records);

 private:
  struct Event {
    std::uint64_t ticket = 0;
    const faults::Record* record = nullptr;
    bool returned = false;
  };

  bool Schedule(std::span<const faults::Record> records, bool whole);
  void Take(std::span<const faults::Record> records);
  void Count(const faults::Record& record);
  void Apply(const Event& event);
  void DropSaidTwice();
  Site PlaceOf(std::uint64_t begin);
  void Misuse(const faults::Record& record);
  void Process(const faults::Record& record);
  ProcessFold& Open(std::uint32_t pid, std::unique_ptr<ProcessFold> process);
  ProcessFold& ProcessOf(std::uint32_t pid);
  const Graphs::Addresses& AddressesOf(const faults::Record& record) const;

  std::vector<std::span<const faults::Record>> given_;
  std::size_t given_count_ = 0;  // records
  std::uint64_t last_ticket_ = 0;
  Books books_;
  std::vector<std::unique_ptr<ProcessFold>> processes_;
  std::unordered_map<std::uint32_t, std::size_t> current_;
  bool begun_ = false;
  Notes notes_ = Notes::Everything;

  // Of the records that are being added.
  std::vector<Event> events_;
  std::unordered_map<std::uint64_t, Graphs::Addresses> addresses_;     // by the begin ticket of the call
  std::unordered_map<std::uint64_t, const faults::Record*> contents_;  // of a graph node that the call adds; the same
  std::unordered_map<std::uint64_t, Site> calls_;                      // the same; filled by the first proved misuse
};

}  // namespace cuaudit::harness
