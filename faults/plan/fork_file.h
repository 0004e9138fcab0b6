// SPDX-License-Identifier: MIT
// fork_file.h: the file through which the tool tells a program where to fork, and hears what became of it: a tree of faults, then slots.
//
//     ForkHeader | ForkNode[nodes] | ForkSlot[slots] | per slot: a journal's header, then records
//
//   Owns      nothing; plain structures over a mapping that tool, program and forked children share.
//   Threads   a node is written by the process that forks at it, before the fork, and by its child; a slot is claimed by compare-exchange.
//   Units     bytes; milliseconds of CLOCK_MONOTONIC.
//   Errors    a reader checks magic, digest and size before it believes anything.
//   Faults    makes no driver calls.
//   Source    ours.
//
// Node 0 is the run without faults. The process of a node goes through its children: at the call that a child names it forks, and the
// forked process takes the fault and goes on with the child's children. So what several trials have in common runs once.
//
// A forked process is a child of the tool (CLONE_PARENT): the tool waits for it, kills it and sees how it ended, whatever became of the
// process that forked it. It needs a slot, which holds its journal from the fork on; the tool frees the slot when it has read it. Slots
// come in pools, one per depth for processes that fork in turn, and pool 0 for those that do not: nobody in pool 0 waits for a slot, so the
// others get theirs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/plan/fault.h"

namespace cuaudit::faults {

inline constexpr char kForkMagic[8] = {'c', 'u', 'a', 'u', 'd', 'i', 't', 'F'};
// A variable of the program's environment: eight hexadecimal digits. A fork writes its own process id over them, so that whatever descends
// from it is known by its environment. Zeros: the run without faults.
inline constexpr char kForkVariable[] = "CUAUDIT_FORK";
inline constexpr std::size_t kForkDigits = 8;

// The journal that CUAUDIT_OPTIONS names ends so, after as many hexadecimal digits: zeros for the run without faults. A fork writes its
// slot + 1 over them, and cuts off that there are forks: a program that it executes has a journal of its own, and moves no count of the
// round. The tool makes those journals beforehand.
inline constexpr char kImageEnding[] = ".journal";
inline constexpr std::size_t kImageDigits = 4;
inline constexpr std::uint32_t kMaxSlots = 0xffff - 1;

inline constexpr std::uint32_t kNoSlot = 0xffffffffU;
inline constexpr std::uint32_t kNoTrial = 0xffffffffU;

// Why a program did not fork where it was asked to; the trial is then run in a process of its own.
enum class ForkRefusal : std::uint32_t {
  None = 0,
  Threads,       // more than the one that calls the driver
  Descriptor,    // an open file, pipe or socket: its state would be shared
  SharedMemory,  // a mapping that others see
  Children,      // it waits for processes that a forked child could not wait for
  Timer,         // a fork does not inherit it
  Indirect,      // another process than the one that the tool started
  Sanitizer,     // takes its own threads for its parent's in a forked child
  Driver,        // not the simulated one
  System,        // no new process, or /proc cannot be read
  WipedMemory,   // madvise(MADV_WIPEONFORK), in more places than can be kept: by that a program notices forks
  AlwaysWiped,   // the kernel does not let it be kept: MAP_DROPPABLE
};
inline constexpr std::size_t kForkRefusals = 12;

enum class ForkState : std::uint32_t { Ahead = 0, Forked, Refused };

struct ForkNode {
  Fault fault;
  std::uint32_t parent = 0;
  std::uint32_t first_child = 0;  // children stand together, in the order of CompareWhere
  std::uint32_t children = 0;
  std::uint32_t depth = 0;         // faults from the root to here
  std::uint32_t trial = kNoTrial;  // of the round; a node that is only on the way to others has none
  bool control = false;            // its process takes no fault: of `fault` only the place counts
  std::atomic<ForkState> state{ForkState::Ahead};
  std::atomic<ForkRefusal> why{ForkRefusal::None};
  std::atomic<std::int32_t> pid{0};
  std::uint32_t slot = kNoSlot;
  std::uint32_t parent_slot = kNoSlot;  // of the process that forked; kNoSlot: the run without faults, whose journal is its own file
  std::uint64_t parent_records = 0;     // what the parent had written by then
};

enum class SlotState : std::uint32_t { Free = 0, Claimed };

struct ForkSlot {
  std::atomic<SlotState> state{SlotState::Free};
  std::uint32_t pool = 0;
  std::atomic<std::uint32_t> node{0};     // whose process has it; written after the node's own fields. 0: not yet anybody's
  std::atomic<std::uint32_t> waiting{0};  // its process waits for a slot
  std::atomic<std::uint32_t> moves{0};    // forks that its process has made
};

struct ForkHeader {
  char magic[8];
  std::uint64_t table_digest;
  std::uint64_t file_bytes;
  std::int32_t tool;  // process id
  std::uint32_t nodes;
  std::uint32_t slots;
  std::uint32_t record_capacity;  // of a slot
  std::uint64_t nodes_offset;
  std::uint64_t slots_offset;
  std::uint64_t journals_offset;       // of slot 0
  std::uint64_t journal_bytes;         // of one slot
  std::uint64_t records_offset;        // inside a slot's journal
  std::atomic<std::uint32_t> freed;    // a futex: one more whenever a slot becomes free
  std::atomic<std::uint32_t> waiting;  // the run without faults waits for a slot
  std::atomic<std::uint32_t> moves;    // forks that it has made
};

// The bytes of a whole file, which begin where a page does: all parts lie inside it, and every node is one that a tool may write. Null: so
// they are; otherwise what is wrong. `journal_header` and `record`: the bytes of a journal's header and of a record in it.
[[nodiscard]] const char* CheckForkFile(const void* bytes, std::size_t size, std::size_t journal_header, std::size_t record) noexcept;

// -1, 0, 1: by base, then phase, then occurrence.
int CompareWhere(const Fault& a, const Fault& b) noexcept;

struct ForkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// The children of `parent` whose fault begins at the `occurrence`-th call of `base` in `phase`.
ForkRange FindForks(const ForkNode* nodes, const ForkNode& parent, driver::BaseId base, Phase phase, std::uint32_t occurrence) noexcept;

// In words that follow "not forked:".
const char* Describe(ForkRefusal why) noexcept;

}  // namespace cuaudit::faults
