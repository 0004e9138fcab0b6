// SPDX-License-Identifier: MIT
// interpreted_stack.h: one call stack from the native and the Python frames of a thread.
//
// Python frames take the place of the native frames that interpret them, and the interpreter's other frames are left out, with libffi and
// ctypes: they say how Python calls C, not what the program does. Frames of C extensions stay where they are. The interpreter's
// innermost frame stays when the interpreter itself makes the call, for example to load an extension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "faults/journal/journal.h"
#include "faults/journal/python_table.h"

namespace cuaudit::faults {

struct NativeStack {
  std::span<const std::uint64_t> frames;   // innermost first, as in the journal
  std::span<const std::uintptr_t> lowest;  // for each frame the lowest address of its part of the stack
  bool complete = false;                   // false: there are more frames outwards, which are not wanted
};

// Names the Python frames that are wanted: a frame of the journal, or 0 for one that is left out.
class PythonNames {
 public:
  PythonNames(const python::Interpreter* interpreter, python::SafeMemory* memory, PythonTable* table) noexcept
      : interpreter_(interpreter), memory_(memory), table_(table) {}
  std::uint64_t Of(const python::Frame& frame) noexcept;
  // Whether any frame could not be read.
  bool failed() const noexcept { return failed_; }

 private:
  const python::Interpreter* interpreter_;
  python::SafeMemory* memory_;
  PythonTable* table_;
  bool failed_ = false;
};

// Writes at most `room` frames and returns their number.
std::size_t Interleave(Journal* journal, const NativeStack& native, std::span<const python::Frame> python, PythonNames* names,
                       std::uint64_t* frames, std::size_t room) noexcept;

}  // namespace cuaudit::faults
