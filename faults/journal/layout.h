// SPDX-License-Identifier: MIT
// layout.h: the bytes of a journal file: a header, tables of modules, call stacks and Python functions, then records.
//
// The structures lie in a shared mapping, and several processes append to one journal, so every counter is an atomic. A reader checks
// magic, version, digest and sizes before it trusts anything (journal_view.h). The file is sparse: only written pages take disk space.
// Sizes are in bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/driver/driver_kind.h"
#include "faults/journal/record.h"

namespace cuaudit::faults {

inline constexpr char kJournalMagic[8] = {'c', 'u', 'a', 'u', 'd', 'i', 't', 'J'};
#define CUAUDIT_JOURNAL_VERSION 6  // a macro, so that string literals can contain it
inline constexpr std::uint32_t kJournalVersion = CUAUDIT_JOURNAL_VERSION;
inline constexpr std::uint32_t kByteOrder = 0x01020304;  // as the writer's processor stores it
inline constexpr std::size_t kMaxBases = 1024;
// Indices in `occurrences` for what the program's own modules ask of the host.
inline constexpr std::size_t kHostOccurrences = kMaxBases - 1;        // allocations
inline constexpr std::size_t kHostThreadOccurrences = kMaxBases - 2;  // threads
inline constexpr std::size_t kHostRecords = kMaxBases - 3;            // records that the probes wrote on their own account
inline constexpr std::size_t kMaxFaults = 16;
inline constexpr std::size_t kMaxModules = 4096;
inline constexpr std::size_t kMaxStacks = 1 << 16;
inline constexpr std::size_t kMaxFrames = 24;
inline constexpr std::size_t kMaxPythonFunctions = 1 << 13;
inline constexpr std::size_t kDefaultRecordCapacity = std::size_t{1} << 22;

using driver::DriverKind;

enum JournalFlag : std::uint32_t {
  kRecordsDropped = 1,  // the capacity was reached or the disk is full; `dropped` has the count
  kStacksDropped = 2,
  kModulesDropped = 4,
  kHostProbesSkipped = 8,  // the host drop-in found a sanitizer in the process and does not watch
  kHostProbesActive = 16,
  kStacksOfObjectsOnly = 32,    // JournalOptions::stacks_of_objects_only was set
  kMutexesDropped = 64,         // more mutexes were alive at once than the host drop-in follows
  kNoSpace = 128,               // the file system could not supply storage, so records were not dropped for lack of capacity
  kHeapNotSeen = 256,           // the program has its own malloc, so the host drop-in sees no heap blocks
  kHeapLeftOut = 512,           // the host drop-in without heap blocks was loaded, because heap blocks were not asked for
  kHostStopped = 1024,          // the host drop-in's records reached half of the capacity, and it stopped writing
  kDescriptorsDisputed = 2048,  // some descriptors could not be told from those that concurrent calls were opening or closing
  kTellsStops = 4096,           // the program answers a request for the places of its threads (record.h)
  kRecording = 8192,            // the records lie in slots with checks, and the oldest make room (recording.h)
  kPacked = 16384,              // a recording that was cut down to what it holds; nobody appends to it
  kCountsUnknown = 32768,       // it was packed first by a cuaudit that kept no counts of torn and damaged records
};

enum class KernelFate : std::uint8_t {
  Hosted,      // a registered host function ran in its place
  Idle,        // nothing ran
  Mismatched,  // nothing ran because the registered function expects other parameters; counted as Idle, too
};
inline constexpr std::size_t kKernelFates = 3;

// A part of a recording in which new records take the place of the oldest. Slots are counted from `first`.
struct Ring {
  std::atomic<std::uint64_t> next;         // slots drawn so far; the next record goes to next % slots
  std::atomic<std::uint64_t> reserved;     // slots that have storage behind them
  std::atomic<std::uint64_t> overwritten;  // records that made room
  std::atomic<std::uint64_t> lost_until;   // the highest ticket in one of them; 0: none made room
  std::uint64_t first;
  std::uint64_t slots;
};
// Calls that change nothing that lasts (launches, copies, queries) come often. They have a ring of their own, so that they do not push out
// the records of what a program holds.
enum RingName : std::uint8_t { kLasting = 0, kPassing = 1 };
inline constexpr std::size_t kRings = 2;

inline constexpr std::uint64_t kMostCounted = 0xffffffffU;  // of what was torn and damaged in a packed recording

struct JournalHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t byte_order;
  std::uint32_t pointer_bytes;
  char tool_version[24];
  std::uint64_t table_digest;
  std::uint64_t file_bytes;
  std::uint64_t record_capacity;
  std::uint64_t modules_offset;
  std::uint64_t stacks_offset;
  std::uint64_t python_offset;
  std::uint64_t records_offset;
  std::uint32_t module_rows;
  std::uint32_t stack_rows;
  std::uint32_t python_rows;
  std::uint32_t window;        // of a recording: readers look at the last so many hundredths of a second; 0: at everything
  std::uint64_t started;       // of a recording: when the file was made, in hundredths of a second since 1970 (UTC)
  std::uint64_t tables_check;  // of a packed recording: Digest of all before the records, with 0 in this place
  Ring ring[kRings];           // of a recording
  std::atomic<std::uint64_t> next_record;
  std::atomic<std::uint64_t> clock;  // the last ticket drawn; tickets count from 1
  std::atomic<std::uint64_t> dropped;
  std::atomic<std::uint64_t> reserved;  // records below this slot have storage behind them
  std::atomic<std::uint32_t> next_module;
  std::atomic<std::uint32_t> next_stack;
  std::atomic<std::uint32_t> flags;
  std::atomic<DriverKind> driver_kind;
  std::atomic<std::int32_t> driver_version;
  std::atomic<std::uint32_t> stack_depth;
  std::atomic<std::uint32_t> cycle;
  std::atomic<std::uint32_t> phase;
  std::atomic<std::uint32_t> unknown_pointers;  // entry points that cuGetProcAddress returned and that are not audited
  std::atomic<std::int32_t> runtime_version;    // version of cuaudit's own CUDA runtime in the program; 0: none
  std::atomic<std::uint32_t> forced_progress;   // times that the drop-in ran queued work for which no call waited
  char driver_path[256];
  char device_name[112];
  std::uint32_t packed_torn;     // of a packed recording: records that were torn when it was packed; kMostCounted: that many or more
  std::uint64_t fixed_check;     // of a recording: FixedDigestOf; 0: made before there was one, and then slots have checks of records alone
  std::uint32_t packed_damaged;  // likewise of damaged ones
  char refused_runtime[256];     // the object whose NVIDIA runtime asked the simulated driver to authenticate itself; empty: none
  std::atomic<std::uint32_t> unread_python;  // Py_Version of an interpreter whose frames are not read; 1: one without; 0: there is none
  char world[1216];                          // options of the simulated driver, as in CUAUDIT_OPTIONS; empty for a genuine driver
  // Kernel launches on the simulated driver, summed over all processes.
  std::atomic<std::uint64_t> kernels[kKernelFates];
  std::atomic<std::uint32_t> fired[kMaxFaults];       // number of times that each fault of the plan fired
  std::atomic<std::uint32_t> matched[kMaxFaults];     // number of calls that matched the fault's place
  std::atomic<std::uint32_t> occurrences[kMaxBases];  // calls per base entry point
};

// One loaded object, identified by path and build id. Frames refer to the object by its index.
struct ModuleRow {
  std::atomic<std::uint64_t> base;   // where it was loaded the last time
  std::atomic<std::uint32_t> state;  // 0 free, 1 being written, 2 complete
  std::uint32_t build_id_bytes;
  std::uint8_t build_id[20];
  char path[220];
};
static_assert(sizeof(ModuleRow) == 256);

// A call stack, innermost frame first. A frame is (module index << 48) | (address relative to the module's load address). Module 0xffff
// means an address in no module. Return addresses are stored unchanged; symbolise address - 1.
struct StackRow {
  std::atomic<std::uint64_t> hash;   // 0 free; set first, by compare-exchange
  std::atomic<std::uint32_t> depth;  // 0 until complete
  std::uint32_t reserved;
  std::uint64_t frame[kMaxFrames];
};
// Module 0xfffe means a Python function: (row << 24) | line, in place of an address.
inline constexpr std::uint64_t kNoModule = 0xffff;
inline constexpr std::uint64_t kPython = 0xfffe;
constexpr std::uint64_t FrameModule(std::uint64_t frame) { return frame >> 48; }
constexpr std::uint64_t FrameOffset(std::uint64_t frame) { return frame & 0xffffffffffffU; }
constexpr std::uint64_t PythonFrame(std::uint64_t row, std::uint64_t line) { return kPython << 48 | row << 24 | (line & 0xffffffU); }
constexpr std::uint64_t FramePythonRow(std::uint64_t frame) { return FrameOffset(frame) >> 24; }
constexpr std::uint32_t FramePythonLine(std::uint64_t frame) { return static_cast<std::uint32_t>(frame & 0xffffffU); }

// A Python function. Longer texts keep their end.
struct PythonRow {
  std::atomic<std::uint64_t> hash;  // 0 free; set first, by compare-exchange
  std::atomic<std::uint32_t> complete;
  std::int32_t first_line;
  char name[160];  // qualified
  char file[336];
};
static_assert(sizeof(PythonRow) == 512);

static_assert(sizeof(Record) * 32 == 4096);

enum RecordSlotState : std::uint32_t {
  kSlotFree = 0,
  kSlotHeld = 1,  // a call is under way, or its process was killed
  kSlotDone = 2,
};

// A record of a recording, with what proves that it is whole.
struct RecordSlot {
  Record record;
  std::atomic<std::uint32_t> state;  // RecordSlotState
  std::uint32_t time;                // hundredths of a second since JournalHeader::started
  std::atomic<std::uint32_t> begun;  // BegunCheckOf the record as it was when its call reached the driver
  std::atomic<std::uint32_t> done;   // DoneCheckOf the finished record
};
static_assert(sizeof(RecordSlot) == 144 && sizeof(RecordSlot) % alignof(RecordSlot) == 0);

}  // namespace cuaudit::faults
