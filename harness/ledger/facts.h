// SPDX-License-Identifier: MIT
// facts.h: what a run did, noted once while its journal is folded: which calls it made, what it marked, which processes took part.
//
//   Threads   values; no shared state.
//   Units     tickets of the journal's clock, 0: none. Records are named by their index in the journal that was folded.
//   Faults    makes no driver calls.
//
// Readers of a journal ask for these and walk no records. An index means nothing in a part of the journal: such a part has facts of its own
// (FactsOf).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "faults/driver/call_id.h"
#include "faults/journal/layout.h"
#include "faults/journal/record.h"

namespace cuaudit::harness {

// A driver call that the program itself made: not one that the driver or the gate made inside another call, and one that was begun.
[[nodiscard]] inline bool IsProgramCall(const faults::Record& record) noexcept {
  return record.kind == faults::RecordKind::Call && record.begin != 0 && record.call < driver::kCallCount &&
         (record.flags & faults::kNested) == 0;
}

[[nodiscard]] inline bool IsMark(const faults::Record& record, faults::MarkKind kind) noexcept {
  return record.kind == faults::RecordKind::Mark && record.call == static_cast<std::uint16_t>(kind);
}

struct ProcessFacts {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;    // of the thread that made its first driver call
  std::uint64_t calls = 0;  // driver calls
  std::uint64_t exit = 0;   // when it began to exit; 0: it wrote no Exit event
  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

struct CycleFacts {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const CycleFacts&, const CycleFacts&) = default;
};

// The first record that a fault hit.
struct Hit {
  std::uint64_t begin = 0;  // 0: the fault hit none
  std::uint32_t record = 0;
  friend bool operator==(const Hit&, const Hit&) = default;
};

// What the program's own modules asked the host for and a fault may refuse.
enum class Asked : std::uint8_t { Memory, Thread };
inline constexpr std::size_t kAskedKinds = 2;

struct Facts {
  std::vector<std::uint32_t> calls;                           // IsProgramCall, in the order in which they began
  std::vector<std::uint32_t> marks;                           // the same, of all kinds
  std::vector<std::uint32_t> readings;                        // of the meters of the host
  std::array<std::vector<std::uint32_t>, kAskedKinds> asked;  // by Asked; with a number that a fault can name
  std::array<std::uint64_t, kAskedKinds> foreign = {};        // asked for by others: the C library, the driver
  std::vector<ProcessFacts> processes;            // in the order of their first record: the program's first process is the first
  std::vector<CycleFacts> cycles;                 // cycle n at [n - 1], up to the last one that any mark names
  std::array<Hit, faults::kMaxFaults> hits = {};  // by number in the plan
  std::uint64_t records = 0;                      // of any kind
  std::uint64_t of_host = 0;                      // and those of the host probes
  bool threaded = false;                          // several threads or processes call the driver

  friend bool operator==(const Facts&, const Facts&) = default;

  // The program's first process, and each that made a driver call; all of them where nothing is known.
  [[nodiscard]] bool IsSubject(std::uint32_t pid) const noexcept;
  [[nodiscard]] const ProcessFacts* Process(std::uint32_t pid) const noexcept;  // null: it wrote nothing
  // Processes other than the first that wrote no Exit event: they may have died of a signal that only their parent saw.
  [[nodiscard]] std::set<std::uint32_t> Vanished() const;

  // Of each record that was begun, in any order.
  void Count(const faults::Record& record, std::uint32_t index);
  // Of each program call, mark, host record and process event, in the order of the clock.
  void Take(const faults::Record& record, std::uint32_t index);
};

// Of a part of a journal; indices count from its first record.
[[nodiscard]] Facts FactsOf(std::span<const faults::Record> records);

}  // namespace cuaudit::harness
