// SPDX-License-Identifier: MIT
// record.h: the one fixed-size record that every driver call, host event and mark leaves in the journal.
//
// The thread that made the call writes the record. `begin` and `end` are tickets of one clock, which all threads and processes of the
// journal share; the clock counts and does not measure time. An acquisition counts from `end`, a release from `begin`. end == 0 means
// that the call did not return (crash, hang, exit inside the call). begin == 0 means that the record was never written. Sizes are in
// bytes.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cuaudit::faults {

enum class RecordKind : std::uint8_t {
  Empty = 0,
  Call = 1,      // a driver call; `call` is a driver::CallId
  Argument = 2,  // device addresses that a call passes to a kernel or a graph node; `context` is the begin ticket of that call
  Mark = 3,      // `call` is a MarkKind
  Process = 4,   // `call` is a ProcessEvent
  Host = 5,      // `call` is a HostCall
  // A misuse proved by the simulated driver; `call` is a driver::MisuseRule. argument[0] = driver::Kind of the object, [1] = its handle
  // or address, [2] = bytes, [3] = begin of the call that is wrong or that queued the wrong operation, [4] = begin of the call whose
  // operation collides with it, 0: none, [5] = 1: it exists only because the plan refused a wait. The record is written during the call
  // that revealed the misuse.
  Misuse = 6,
  // Where a thread was when its process died, or at the deadline that the process missed. `call` is the signal that ended the process, 0
  // for a deadline; `stack` is that of the interrupted code. argument[0] = si_code of the signal, [1] = the address at fault, [2] = the
  // stack pointer, [3] = begin of the driver call under way, 0: none. end == 0: the stack could not be taken.
  Stop = 7,
};

// At the end of a cycle argument[1] = 1 when the driver reported its device memory in use, and [2] = that number of bytes.
enum class MarkKind : std::uint16_t {
  CycleBegin = 0,
  CycleEnd = 1,
  Phase = 2,
  Report = 3,  // argument[0] = what the program told its caller, 32 bits: 0, a CUresult, or another number for a failure without a code
  Output = 4,  // argument[0] = 1: the program's output is set
  // A block of the program's own pool: argument[0] = address, [1] = bytes. `stack` is set.
  BlockOut = 5,
  BlockBack = 6,
};

enum class ProcessEvent : std::uint16_t {
  Start = 0,  // the drop-in was loaded; argument[0] = parent process id
  Fork = 1,   // written in the child; argument[0] = parent process id. The parent's objects are inherited, not leaked
  // exit() runs its handlers, the last registered first. This event is written once, by an exit handler that the drop-in registers at
  // the first driver call and again after the first injected result; without a driver call, by the drop-in's destructor. Handlers that
  // the program registers later run before it. Not written after _exit, quick_exit, exec, abort or a signal.
  Exit = 2,
  // cuaudit's own CUDA runtime releases what it holds, after everything that the program does at exit. An object that loses its context
  // from here on was left by the program.
  RuntimeExit = 3,
  Running = 4,  // right before Exit, once for each other thread that still runs; argument[0] = its thread id
};

// Host events that the host drop-in of faults/interpose records; host_calls.def says what their arguments are.
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
  kInjected = 1,    // the gate made the result, not the driver
  kForwarded = 2,   // the driver was called (a fault of the way `after` sets both flags)
  kUnmodelled = 4,  // the driver's entry point can only answer CUDA_ERROR_NOT_SUPPORTED
  kNested = 8,      // made by the driver or by the gate while inside another call
  // A host block that the C library allocated for itself: the program called no function that hands memory out.
  kKeptByLibrary = 16,
  // A host block that belongs to a loaded library or to a thread, which have records of their own.
  kPartOfOther = 32,
  // A descriptor found by a census is an event or a pipe, which a driver opens past every wrapper, besides its devices.
  kEventOrPipe = 64,
};

// When one of these is set, an Argument record holds the following instead.
enum ArgumentFlag : std::uint16_t {
  kNames = 0x80,  // argument[0] = driver::Kind of what a structure names, [1] = its handle or address. Of copies that the driver declined
  kMemoryNode = 0x100,    // argument[0] = address of memory that the graph owns, [1] = its bytes; 0: the node frees the memory
  kMovedGraph = 0x200,    // argument[0] = the graph that the node took over: the parent graph destroys it
  kCopiedGraph = 0x400,   // argument[0] = the graph that was copied into the node
  kCapturedNode = 0x800,  // argument[0] = the node that the call became, [1] = the stream under capture, [2] = the node's graph; 0 where
                          // the driver did not say
  // argument[0] = descriptor + 1 that the call made for the program, [1] = descriptor + 1 that the driver took over from it; 0: none
  kDescriptor = 0x1000,
  // What the new object stands on: argument[0] = driver::Kind, [1] = its handle or an address in it. For a kernel node: Kind::Module and
  // the handle of the function or kernel.
  kStandsOn = 0x2000,
  // Eight-byte arguments of a kernel launch. Only written while a texture or surface object lives whose memory is gone.
  kLaunchWords = 0x4000,
  // What belongs to the object that the call made, and ends with it: argument[0] = driver::Kind, [1] = its handle.
  kLends = 0x8000,
};

struct Record {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t context = 0;  // current context at entry; for Argument: begin of the call that it belongs to
  std::uint32_t stack = 0;    // StackTable id; 0: no stack was taken
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::int32_t result = 0;
  std::uint16_t call = 0;
  RecordKind kind = RecordKind::Empty;
  Phase phase = Phase::Any;
  std::uint16_t flags = 0;
  std::uint16_t fault = 0;       // number of the fault of the plan that fired, counted from 1; 0: none
  std::uint32_t cycle = 0;       // counted from 1 by the program's marks; 0: no marks
  std::uint32_t occurrence = 0;  // n-th call of this base entry point by the program, counted from 1; 0: a nested call
  // Arguments as passed. An output parameter (Shape::output) has the value that was written when the call succeeded, otherwise 0.
  // Parameters past the ninth are not recorded. Behind the last parameter of a call of a setting stands the value that a pointer of it
  // points to, where that is no such output (faults/driver/settings.def); a recording in production leaves it out.
  std::uint64_t argument[9] = {};
};

static_assert(sizeof(Record) == 128);
static_assert(std::is_trivially_copyable_v<Record>);
inline constexpr std::size_t kRecordArguments = 9;

// Values with a special meaning in the second argument of a host record.

// In a DescriptorClose record: the kernel declined the close, because the number was not open.
inline constexpr std::uint64_t kNotOpen = ~std::uint64_t{0};
// The same in a lifecycle, by its own thread; and a descriptor that was open when the audit in its process began.
inline constexpr std::uint64_t kClosedAgain = kNotOpen - 1;
inline constexpr std::uint64_t kOpenAtBegin = kNotOpen - 2;

// Which kernel arguments can be told from plain numbers.

// A driver may count its texture and surface objects from 1. Then an argument of that value may as well be a length or a flag, so a smaller
// handle proves nothing.
constexpr bool IsDistinctive(std::uint64_t handle) noexcept { return handle >= std::uint64_t{1} << 20U; }

// How the harness asks a process that missed its deadline for the places of its threads: by this signal, sent by sigqueue
// with this number. The process writes RecordKind::Stop for each thread and kills itself. It may be asked only while its journal has the
// flag kTellsStops, because otherwise the signal means nothing to it, or something else.

inline constexpr int kStopRequest = 0x63756174;
inline int StopRequestSignal() noexcept { return SIGRTMAX - 3; }

}  // namespace cuaudit::faults
