// SPDX-License-Identifier: MIT
// call_record.h: one call on its way through a gate, and the records that the gate writes of it.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "call_record.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/driver/call_shape.h"
#include "faults/driver/driver_ref.h"
#include "faults/driver/misuse.h"
#include "faults/journal/journal.h"
#include "faults/journal/record.h"
#include "faults/journal/recording.h"
#include "faults/journal/stack_table.h"
#include "faults/plan/fault.h"
#include "faults/shim/thread_identity.h"

namespace cuaudit::faults {

// One call on its way through a gate.

// `value` holds arguments as passed, as many as the call has; for outputs the address that the call writes to.
struct Passage {
  driver::CallId id{};
  std::uint64_t value[driver::kMaxParameters];  // clearing it would cost a quarter of the gate
  std::uint64_t given = 0;                      // what the driver writes its answer over (GivenTo)
  std::uint32_t occurrence = 0;                 // how many of its name there were by then; 0: nested, or no journal
  std::uint64_t stream = 0;                     // where the work is queued, if that is `captured`
  Record* record = nullptr;
  const class Gate* outer = nullptr;  // the gate this thread was inside of before, and its call's ticket
  std::uint64_t outer_begin = 0;
  CUresult injected = CUDA_SUCCESS;
  How how = How::Refuse;
  bool forward = true;
  bool captured = false;
};

// Makes and fills the records that a gate writes.
//
//   Threads   safe: each record is reserved and filled by one thread.
//   Errors    a full journal, or none (null), has no record: then nothing is written.
//   Faults    FillArguments calls CtxGetCurrent, past the plan: what was current when the call came.

// A record that was begun, in the name of this process and thread; null: there is no room.
inline Record* NewRecord(Journal* journal, RecordKind kind, std::uint16_t call) noexcept {
  if (journal == nullptr) return nullptr;
  Record* record = journal->Begin(journal->recording() && IsPassing(kind, call));
  if (record == nullptr) return nullptr;
  const JournalHeader& header = journal->header();
  record->kind = kind;
  record->call = call;
  record->pid = Pid();
  record->tid = Tid();
  record->cycle = header.cycle.load(std::memory_order_relaxed);
  record->phase = static_cast<Phase>(header.phase.load(std::memory_order_relaxed));
  return record;
}

// Counts a call in the journal's header; returns how many of its name there are by now.
std::uint32_t CountCall(driver::CallId call, Journal* journal) noexcept;

// Number, arguments as passed, and for calls that acquire or release the context that was current. A nested call has no number.
void FillArguments(const Passage& passage, bool nested, driver::DriverRef next, Journal* journal) noexcept;

// What a call that succeeded has written to its outputs.
void FillOutputs(const Passage& passage) noexcept;

// The value that a setting was changed to, or that a query of it answered, behind a pointer whose type does not tell its size
// (faults/driver/settings.def).
void ReadSetting(const Passage& passage) noexcept;

// What the plan lets a refused call write to its outputs.
void WriteGarbage(const Passage& passage) noexcept;

// `device_bytes`: memory in use on the current device, null when nobody read it.
void WriteMark(Journal* journal, MarkKind kind, std::uint32_t value, const std::uint64_t* device_bytes) noexcept;
void WriteProcess(Journal* journal, ProcessEvent event, std::uint64_t argument) noexcept;
void WriteBlock(Journal* journal, StackTable* stacks, MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept;
void WriteMisuse(Journal* journal, const driver::Misuse& misuse) noexcept;

}  // namespace cuaudit::faults
