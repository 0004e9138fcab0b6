// SPDX-License-Identifier: MIT
// facts.h: which calls a run made, what it marked, and which processes took part, noted once while the journal is folded.
//
//   Units     tickets of the journal's clock, 0 for none. Records are named by their index in the journal.
//
// Code that asks about a run uses these facts and walks no records. Indices are only valid for the journal that was folded. A part of a
// journal has facts of its own (FactsOf).
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

// True for a driver call of the program itself: a call that was begun, and was not made by the driver or the gate inside another call.
[[nodiscard]] inline bool IsProgramCall(const faults::Record& record) noexcept {
  return record.kind == faults::RecordKind::Call && record.begin != 0 && record.call < driver::kCallCount &&
         (record.flags & faults::kNested) == 0;
}

[[nodiscard]] inline bool IsMark(const faults::Record& record, faults::MarkKind kind) noexcept {
  return record.kind == faults::RecordKind::Mark && record.call == static_cast<std::uint16_t>(kind);
}

struct ProcessFacts {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;                    // thread that made the first driver call of the process
  std::uint64_t calls = 0;                  // driver calls
  std::uint64_t exit = 0;                   // ticket of the Exit event; 0 when there is none
  std::vector<std::uint32_t> running = {};  // the other threads that still ran then
  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

struct CycleFacts {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const CycleFacts&, const CycleFacts&) = default;
};

// The first record that a fault hit.
struct Hit {
  std::uint64_t begin = 0;  // 0: the fault hit no record
  std::uint32_t record = 0;
  friend bool operator==(const Hit&, const Hit&) = default;
};

// Sorts of host resources that the program's own modules ask for and that a fault can refuse.
enum class Asked : std::uint8_t { Memory, Thread };
inline constexpr std::size_t kAskedKinds = 2;

struct Facts {
  std::vector<std::uint32_t> calls;                           // program calls (IsProgramCall), in the order of their begin
  std::vector<std::uint32_t> marks;                           // marks of all kinds, in the same order
  std::vector<std::uint32_t> readings;                        // records of host meters
  std::vector<std::uint32_t> closes;                          // of descriptors, by the program
  std::vector<std::uint32_t> stops;                           // where threads were when the process died or missed its deadline
  std::array<std::vector<std::uint32_t>, kAskedKinds> asked;  // requests of the program, by Asked, that a fault can name
  std::array<std::uint64_t, kAskedKinds> foreign = {};        // requests of other code (C library, driver), by Asked
  std::vector<ProcessFacts> processes;            // in the order of their first record; the first is the program's first process
  std::vector<CycleFacts> cycles;                 // cycle n is at [n - 1]; the last one is the highest that a mark names
  std::array<Hit, faults::kMaxFaults> hits = {};  // by the fault's number in the plan
  std::uint64_t records = 0;                      // number of records of any kind
  std::uint64_t of_host = 0;                      // number of records of the host probes
  bool threaded = false;                          // true when several threads or processes call the driver

  friend bool operator==(const Facts&, const Facts&) = default;

  // True for the program's first process. The ending of the run is its ending.
  [[nodiscard]] bool IsFirst(std::uint32_t pid) const noexcept { return !processes.empty() && processes.front().pid == pid; }
  // True for the program's first process and for each process that made a driver call. True for every process when none is known.
  [[nodiscard]] bool IsSubject(std::uint32_t pid) const noexcept;
  [[nodiscard]] const ProcessFacts* Process(std::uint32_t pid) const noexcept;  // null when the process wrote nothing
  // The processes other than the first that wrote no Exit event. A signal may have ended them, which only their parent saw.
  [[nodiscard]] std::set<std::uint32_t> Vanished() const;

  // Notes a record that was begun. Records may come in any order.
  void Count(const faults::Record& record, std::uint32_t index);
  // Notes a program call, mark, host record, process event or stop. These come in the order of the clock.
  void Take(const faults::Record& record, std::uint32_t index);
};

// The facts of a part of a journal. Indices count from the first record of the part.
[[nodiscard]] Facts FactsOf(std::span<const faults::Record> records);

}  // namespace cuaudit::harness
