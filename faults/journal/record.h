// SPDX-License-Identifier: MIT
// record.h: the one fixed-size record that every driver call, host event and mark leaves in the journal.
//
//   Owns      nothing; a plain structure that tests write by hand.
//   Threads   a record is written by the thread that made the call. `begin` and `end` are drawn from one clock shared by all
//             threads and processes of the journal: an acquisition counts from `end`, a release from `begin`.
//   Units     bytes; tickets of the journal's clock, not time.
//   Errors    end == 0: the call did not return (crash, hang, exit inside the call). begin == 0: never written.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cuaudit::faults {

enum class RecordKind : std::uint8_t {
  Empty = 0,
  Call = 1,      // a driver call; `call` is a driver::CallId
  Argument = 2,  // device addresses that call `context` (its begin ticket) hands to a kernel or a graph node
  Mark = 3,      // `call` is a MarkKind
  Process = 4,   // `call` is a ProcessEvent
  Host = 5,      // `call` is a HostCall
  // What the simulated driver can prove to be wrong; `call` is a driver::MisuseRule. argument[0] = driver::Kind of the object,
  // [1] = its handle or address, [2] = bytes, [3] = begin of the call that is wrong or that queued what is wrong, [4] = begin of the call
  // whose operation it collides with, 0: none. Written while the call is under way that brought it to light.
  Misuse = 6,
};

// The end of a cycle: argument[1] = 1 when the driver said how much device memory is in use, [2] = that many bytes.
enum class MarkKind : std::uint16_t {
  CycleBegin = 0,
  CycleEnd = 1,
  Phase = 2,
  Report = 3,  // argument[0] = what the program tells its caller, as 32 bits: 0, a CUresult, or another number for a failure without one
  Output = 4,  // argument[0] = 1: its output is set
  // The program's own pool: argument[0] = address of a block of it, [1] = bytes. `stack` is set.
  BlockOut = 5,
  BlockBack = 6,
};

enum class ProcessEvent : std::uint16_t {
  Start = 0,  // the drop-in was loaded; argument[0] = parent process id
  Fork = 1,   // in the child; argument[0] = parent process id. What the parent holds is inherited, not leaked
  // exit() runs its handlers, the last registered first. Written once, by an exit handler that the drop-in registers at the process's
  // first driver call and again after its first injected result; without a driver call, by the drop-in's destructor. Handlers that the
  // program registered after that run before it. Not written after _exit, quick_exit, exec, abort or a signal.
  Exit = 2,
  // cuaudit's own CUDA runtime gives back what it holds itself, after all that the program does at exit: what then loses its context was
  // left by the program.
  RuntimeExit = 3,
};

// What the host drop-in sees; see faults/interpose.
enum class HostCall : std::uint16_t {
#define CUAUDIT_HOST_CALL(name, text, counts) name,
#include "faults/journal/host_calls.def"
#undef CUAUDIT_HOST_CALL
};

enum class HostCounts : std::uint8_t { AtEntry, AtReturn };

struct HostCallRow {
  const char* text;
  HostCounts counts;
};
inline constexpr HostCallRow kHostCalls[] = {
#define CUAUDIT_HOST_CALL(name, text, counts) {text, HostCounts::counts},
#include "faults/journal/host_calls.def"
#undef CUAUDIT_HOST_CALL
};
inline constexpr std::size_t kHostCallCount = sizeof(kHostCalls) / sizeof(kHostCalls[0]);

enum class Phase : std::uint8_t { Any = 0, Init = 1, Work = 2, Teardown = 3, Unwind = 4 };

enum RecordFlag : std::uint16_t {
  kInjected = 1,    // the result is ours, not the driver's
  kForwarded = 2,   // the driver was reached (for `after`: both flags are set)
  kUnmodelled = 4,  // nothing but CUDA_ERROR_NOT_SUPPORTED stands behind this entry point
  kNested = 8,      // made by the driver or by the gate's own work while inside another call
  // A host block that the C library allocated for itself: the program called no function that hands memory out.
  kKeptByLibrary = 16,
  // A host block that belongs to a library that was loaded or to a thread, which have records of their own.
  kPartOfOther = 32,
  // A descriptor that a census found is an event or a pipe: what a driver opens past every wrapper, beside its devices.
  kEventOrPipe = 64,
};

// What an Argument record holds instead, when one of these is set.
enum ArgumentFlag : std::uint16_t {
  kMemoryNode = 0x100,    // argument[0] = address of memory that the graph owns, [1] = its bytes; 0: the node frees it
  kMovedGraph = 0x200,    // argument[0] = the graph that became the node's: the parent destroys it
  kCopiedGraph = 0x400,   // argument[0] = the graph that was copied into the node
  kCapturedNode = 0x800,  // argument[0] = the node that the call became, [2] = its graph, 0 where the driver did not say; [1] = the stream
                          // under capture
};

struct Record {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t context = 0;  // current context at entry; for Argument: begin of the call it belongs to
  std::uint32_t stack = 0;    // StackTable id, 0: none taken
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::int32_t result = 0;
  std::uint16_t call = 0;
  RecordKind kind = RecordKind::Empty;
  Phase phase = Phase::Any;
  std::uint16_t flags = 0;
  std::uint16_t fault = 0;       // which fault of the plan hit, counted from 1; 0: none
  std::uint32_t cycle = 0;       // counted from 1 by the program's marks; 0: no marks
  std::uint32_t occurrence = 0;  // n-th call of this base entry point in the journal, counted from 1
  // Arguments as passed. A parameter that the call writes (Shape::output) holds what was written when the call succeeded, 0 otherwise.
  // Parameters past the ninth are not recorded.
  std::uint64_t argument[9] = {};
};

static_assert(sizeof(Record) == 128);
static_assert(std::is_trivially_copyable_v<Record>);
inline constexpr std::size_t kRecordArguments = 9;

}  // namespace cuaudit::faults
