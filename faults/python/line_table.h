// SPDX-License-Identifier: MIT
// line_table.h: the source line of an instruction, from the location table of a code object (co_linetable, CPython 3.11 and newer).
//
// Each entry covers 1 to 8 code units of two bytes. Its first byte has the top bit set, then a kind in 4 bits and the number of units less
// one in 3 bits. The kinds 0 to 12 and 14 have columns as well, which are skipped; kind 15 has no location.
// Source: "Locations table" in CPython's InternalDocs/code_objects.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/python/safe_memory.h"

namespace cuaudit::python {

// `offset` is in bytes from the first instruction. Where the instruction has no location, the line of the nearest one before it that has.
// 0: the table cannot be read, or has no line up to there.
int LineAt(SafeMemory* memory, std::uintptr_t table, std::size_t bytes, int first_line, std::size_t offset) noexcept;

}  // namespace cuaudit::python
