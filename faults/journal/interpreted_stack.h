// SPDX-License-Identifier: MIT
// interpreted_stack.h: the Python functions of a journal, and one call stack from the native and the Python frames of a thread.
//
//   Owns      a cache of the places that were last met. Borrows the journal.
//   Threads   safe and lock-free, also between processes.
//   Errors    a full table raises kModulesDropped; the frame then has no row, and is Python of an unknown name.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "faults/journal/journal.h"
#include "faults/python/interpreter.h"

namespace cuaudit::faults {

class PythonTable {
 public:
  void Attach(Journal* journal) noexcept { journal_ = journal; }
  // The function and the line as a frame (layout.h).
  std::uint64_t Encode(const python::Function& function, int line) noexcept;

  // What Remember was told of this place, if it is still kept; false leaves *frame alone. Reading a name and a line takes far longer.
  bool Recall(const python::Identity& identity, std::uint64_t* frame) const noexcept;
  void Remember(const python::Identity& identity, std::uint64_t frame) noexcept;

 private:
  // Two words that are written one by one, by any thread: they belong together when their difference is the key.
  struct Met {
    std::atomic<std::uint64_t> frame{0};
    std::atomic<std::uint64_t> mixed{0};  // the key, exclusive or the frame
  };
  static constexpr std::size_t kMet = 1024;

  Met met_[kMet];
  Journal* journal_ = nullptr;
  PageGuard<kMaxPythonFunctions * sizeof(PythonRow)> pages_;
};

// One call stack from the native and the Python frames of a thread.
//
// Python frames take the place of the native frames that interpret them, and the interpreter's other frames are left out, with libffi and
// ctypes: they say how Python calls C, not what the program does. Frames of C extensions stay where they are. The interpreter's
// innermost frame stays when the interpreter itself makes the call, for example to load an extension.

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
