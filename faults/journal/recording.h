// SPDX-License-Identifier: MIT
// recording.h: what a recording (`cuaudit record`) has beyond another journal: bounded rings of slots, each with checks and a time.
//
// A recording is made in production, may run for weeks, and is sent to somebody else. So new records take the place of the oldest; a record
// that was cut short by a kill, or changed on the way, is told by its check; and nothing is written that could be data of the program.
// docs/JOURNAL.md says what a recording contains.
#pragma once

#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/journal/layout.h"

namespace cuaudit::faults {

// Checks of a slot; never 0. That of a record whose call reached the driver covers the time, too; that of a finished one all but the
// state, which follows from the record.
std::uint32_t BegunCheckOf(const RecordSlot& slot) noexcept;
std::uint32_t DoneCheckOf(const RecordSlot& slot) noexcept;
// What stood in both places in the files of earlier tools (JournalHeader::fixed_check is 0): a check over the 128 bytes of the record.
std::uint32_t CheckOf(const Record& record) noexcept;

// A check over header and tables: `base` is the file, whose bytes up to `records_offset` are there.
std::uint64_t DigestOf(const JournalHeader& header, const char* base) noexcept;

// A check over what nobody changes after the file was made: sizes and places, what kind of journal it is, where the rings lie. Never 0.
std::uint64_t FixedDigestOf(const JournalHeader& header) noexcept;

// Hundredths of a second since 1970, of the kernel's coarse clock.
std::uint64_t HundredthsNow() noexcept;

// True for the record of a call that changes nothing that lasts: a launch, a copy, a query, a wait. The rest of what a call did to objects
// can be told without it.
bool IsPassing(RecordKind kind, std::uint16_t call) noexcept;

// True for a call that reads a setting of the driver, a device or the calling thread and names no object (cuCtxGetDevice): PyTorch makes
// many of them for each launch. A recording counts those that succeed and has no record of them.
bool IsPlainQuery(driver::CallId call) noexcept;

// True when this argument of the call is data of the program and no size, handle or address: the value that a memset writes.
bool IsData(driver::BaseId base, std::size_t argument) noexcept;

}  // namespace cuaudit::faults
