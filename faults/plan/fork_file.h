// SPDX-License-Identifier: MIT
// fork_file.h: the file by which the tool tells a program where to fork, and by which the program reports the forks: a tree of faults,
// then slots.
//
//     ForkHeader | ForkNode[nodes] | ForkSlot[slots] | per slot: a journal's header, then records
//
// Node 0 is the run without faults. The process of a node goes through the node's children: at the call that a child names it forks, and
// the forked process takes the fault and goes on with the children of that child. What several trials have in common runs only once.
//
// A forked process is a child of the tool (CLONE_PARENT): the tool waits for the process, kills it and sees how it ended, whatever
// became of the process that forked it. A forked process needs a slot, which holds its journal from the fork on. The tool frees the slot
// when it has read the journal. Slots come in pools: one pool per depth for processes that fork in turn, and pool 0 for those that do
// not. A process in pool 0 never waits for another slot, so the processes that wait get theirs.
//
// The tool, the program and the forked children share the mapping. The process that forks at a node writes the node before the fork, and
// its child writes it afterwards; a slot is claimed by compare-exchange. A reader checks magic, digest and size before it trusts
// anything. Sizes are in bytes, times in milliseconds of CLOCK_MONOTONIC.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/plan/fault.h"
#include "faults/plan/plan.h"

namespace cuaudit::faults {

inline constexpr char kForkMagic[8] = {'c', 'u', 'a', 'u', 'd', 'i', 't', 'F'};
// A variable in the program's environment with eight hexadecimal digits; zeros in the run without faults. A fork overwrites them with
// its own process id, so that its descendants can be recognised by their environment.
inline constexpr char kForkVariable[] = "CUAUDIT_FORK";
inline constexpr std::size_t kForkDigits = 8;

// The journal named in CUAUDIT_OPTIONS ends in this, after eight hexadecimal digits, which are zeros in the run without faults. A fork
// overwrites the digits with its slot + 1 and cuts off the option for forks. A program that the fork executes then has its own journal,
// made beforehand by the tool, and takes no part in the round.
inline constexpr char kImageEnding[] = ".journal";
inline constexpr std::size_t kImageDigits = 4;
inline constexpr std::uint32_t kMaxSlots = 0xffff - 1;

inline constexpr std::uint32_t kNoSlot = 0xffffffffU;
inline constexpr std::uint32_t kNoTrial = 0xffffffffU;

// Why a program did not fork at a node. The tool then runs the trial in a process of its own.
enum class ForkRefusal : std::uint32_t {
  None = 0,
  Threads,       // the program has more threads than the one that calls the driver
  Descriptor,    // an open file, pipe or socket, whose state would be shared
  SharedMemory,  // a mapping that other processes see
  Children,      // the program has child processes, which a forked process could not wait for
  Timer,         // a timer, which a forked process does not inherit
  Indirect,      // the process is not the one that the tool started
  Sanitizer,     // a sanitizer, which in a forked process takes its own threads for its parent's
  Driver,        // the driver is not the simulated one
  System,        // no new process can be made, or /proc cannot be read
  WipedMemory,   // madvise(MADV_WIPEONFORK) in more places than can be kept; a program notices forks by such memory
  AlwaysWiped,   // MAP_DROPPABLE memory, which the kernel does not let a fork keep
};
inline constexpr std::size_t kForkRefusals = 12;

enum class ForkState : std::uint32_t { Ahead = 0, Forked, Refused };

struct ForkNode {
  Fault fault;
  std::uint32_t parent = 0;
  std::uint32_t first_child = 0;  // the children are contiguous, in the order of CompareWhere
  std::uint32_t children = 0;
  std::uint32_t depth = 0;         // number of faults from the root to this node
  std::uint32_t trial = kNoTrial;  // number of the trial in the round; a node that only leads to others has none
  bool control = false;            // the process takes no fault; only the place of `fault` is used
  std::atomic<ForkState> state{ForkState::Ahead};
  std::atomic<ForkRefusal> why{ForkRefusal::None};
  std::atomic<std::int32_t> pid{0};
  std::atomic<std::uint32_t> slot{kNoSlot};
  std::atomic<std::uint32_t> parent_slot{kNoSlot};  // of the process that forked; kNoSlot: the run without faults, whose journal is a file
  std::atomic<std::uint64_t> parent_records{0};     // number of records that the parent had written at the fork
};

enum class SlotState : std::uint32_t { Free = 0, Claimed };

struct ForkSlot {
  std::atomic<SlotState> state{SlotState::Free};
  std::uint32_t pool = 0;
  std::atomic<std::uint32_t> node{0};     // node whose process has the slot, written after the node's own fields; 0: none yet
  std::atomic<std::uint32_t> waiting{0};  // 1: the process waits for a slot
};

struct ForkHeader {
  char magic[8];
  std::uint64_t table_digest;
  std::uint64_t file_bytes;
  std::int32_t tool;  // process id of the tool
  std::uint32_t nodes;
  std::uint32_t slots;
  std::uint32_t record_capacity;  // of one slot
  std::uint64_t nodes_offset;
  std::uint64_t slots_offset;
  std::uint64_t journals_offset;       // offset of the journal of slot 0
  std::uint64_t journal_bytes;         // size of the journal of one slot
  std::uint64_t records_offset;        // offset of the records inside a slot's journal
  std::atomic<std::uint32_t> freed;    // a futex, incremented whenever a slot becomes free
  std::atomic<std::uint32_t> waiting;  // 1: the run without faults waits for a slot
};

// Checks a whole file: all parts lie inside the file, and every node is one that the tool may write. `bytes` must be aligned to a page.
// `journal_header` and `record` are the sizes of a journal's header and of a record. Returns null, or what is wrong.
[[nodiscard]] const char* CheckForkFile(const void* bytes, std::size_t size, std::size_t journal_header, std::size_t record) noexcept;

// Compares by base, then phase, then occurrence; returns -1, 0 or 1.
int CompareWhere(const Fault& a, const Fault& b) noexcept;

struct ForkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// The children of `parent` whose fault begins at the `occurrence`-th call of `base` in `phase`.
ForkRange FindForks(const ForkNode* nodes, const ForkNode& parent, driver::BaseId base, Phase phase, std::uint32_t occurrence) noexcept;

// The file that says under which faults each cycle of a program runs. Each cycle is one trial.
//
//     CycleHeader | CycleRow[rows], in the order of the cycles
//
// The program only reads the file. The thread that marks a cycle looks up its row; a cycle without a row runs without faults.
// Occurrences count from the begin of the cycle. A reader checks magic, digest, size and each fault before it trusts anything.

inline constexpr char kCycleMagic[8] = {'c', 'u', 'a', 'u', 'd', 'i', 't', 'C'};
inline constexpr std::size_t kCycleFaults = 4;

struct CycleHeader {
  char magic[8];
  std::uint64_t table_digest;
  std::uint64_t file_bytes;
  std::uint64_t rows;
};

struct CycleRow {
  std::uint32_t cycle = 0;  // counted from 1
  std::uint32_t faults = 0;
  Fault fault[kCycleFaults];
};

// The faults of each cycle, as the program reads them.
class CyclePlans {
 public:
  // Maps the file while the program is loaded; the mapping stays for the rest of the process. Returns null or a static phrase that says
  // what is wrong.
  [[nodiscard]] const char* Open(const char* path) noexcept;
  // As Open, for the content of a file. `bytes` must be aligned to a page and outlive this object.
  [[nodiscard]] const char* Adopt(const void* bytes, std::size_t size) noexcept;
  bool is_open() const noexcept { return header_ != nullptr; }
  // The faults of a cycle; empty for a cycle that runs without faults.
  Plan Of(std::uint32_t cycle) const noexcept;

 private:
  const CycleHeader* header_ = nullptr;
};

}  // namespace cuaudit::faults
