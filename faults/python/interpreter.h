// SPDX-License-Identifier: MIT
// interpreter.h: reads the Python frames of the calling thread from the structures of CPython, without calling into it and without its
// lock.
//
//   Owns      the layout of the interpreter in this process, and the last known state of a few threads.
//   Threads   See from one thread at a time; all others from every thread. A thread reads its own frames, which nobody else changes; lists
//             that others change are read with care (safe_memory.h), and what they led to is checked.
//   Errors    an interpreter that is not read has unread(): a version outside of 3.11 to 3.14, or a build with other objects.
//   Faults    allocates nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "faults/python/layout.h"
#include "faults/python/safe_memory.h"

struct dl_phdr_info;

namespace cuaudit::python {

// A call of a Python function that has not returned.
struct Frame {
  std::uintptr_t code = 0;         // its code object
  std::uintptr_t instruction = 0;  // in that object
  // A variable on the native stack, in the frame of the native function that interprets this one. One native frame interprets several
  // Python frames when Python calls Python. 0: unknown.
  std::uintptr_t native = 0;
};

inline constexpr std::size_t kMaxPythonFrames = 64;

// Frames of a thread, innermost first; the outer ones are missing when there are more.
struct Frames {
  std::size_t count = 0;
  Frame frame[kMaxPythonFrames];
};

// By what a function and the place in it are known again, as long as its code object lives.
struct Identity {
  std::uintptr_t code;
  std::uintptr_t instruction;
  std::uintptr_t filename;
  std::uintptr_t qualname;
  std::uintptr_t lines;
  std::int32_t first_line;
};

struct Function {
  char name[160];  // qualified
  char file[336];
  int first_line = 0;
};

enum class Described : std::uint8_t {
  Known,
  Machinery,  // the interpreter's own code, such as what calls __init__
  Unread,
};

class Interpreter {
 public:
  // Looks whether the object is, or contains, a Python interpreter.
  void See(const dl_phdr_info& object) noexcept;
  bool present() const noexcept { return state_.load(std::memory_order_acquire) == State::Readable; }
  // Version of an interpreter that is in the process and is not read, as Py_Version has it; 1: it has none, as before 3.11. 0: there is
  // none.
  // Says that this interpreter turned out not to be readable.
  void NoteUnread() noexcept { unread_.store(version_, std::memory_order_relaxed); }
  std::uint32_t unread() const noexcept { return unread_.load(std::memory_order_relaxed); }

  // The rest needs present().
  // State of the calling thread when it runs Python code; 0: it runs none.
  std::uintptr_t ThisThread(SafeMemory* memory) noexcept;
  void Walk(SafeMemory* memory, std::uintptr_t thread, Frames* frames) const noexcept;
  // False: this is no code object.
  bool Identify(SafeMemory* memory, const Frame& frame, Identity* identity) const noexcept;
  // Sets *function and the line, when they are Known.
  Described Describe(SafeMemory* memory, const Identity& identity, Function* function, int* line) const noexcept;

 private:
  enum class State : std::uint8_t { None, Readable, Unread };
  struct Known {
    std::atomic<std::uintptr_t> thread{0};
    std::atomic<std::uintptr_t> state{0};
  };
  static constexpr std::size_t kKnown = 64;

  std::uintptr_t FindThread(SafeMemory* memory, std::uintptr_t self) const noexcept;
  bool Runs(SafeMemory* memory, std::uintptr_t state, std::uintptr_t self) const noexcept;
  std::uintptr_t CurrentFrame(SafeMemory* memory, std::uintptr_t state, std::uintptr_t* holder) const noexcept;

  std::atomic<State> state_{State::None};
  std::atomic<std::uint32_t> unread_{0};
  Layout layout_{};
  std::uint32_t version_ = 0;
  std::uintptr_t runtime_ = 0;
  std::uintptr_t code_type_ = 0;
  std::uintptr_t text_type_ = 0;
  std::uintptr_t bytes_type_ = 0;
  Known known_[kKnown];
};

// The source line of an instruction, from the location table of a code object (co_linetable, CPython 3.11 and newer).
//
// Each entry covers 1 to 8 code units of two bytes. Its first byte has the top bit set, then a kind in 4 bits and the number of units less
// one in 3 bits. The kinds 0 to 12 and 14 have columns as well, which are skipped; kind 15 has no location.
// Source: "Locations table" in CPython's InternalDocs/code_objects.md.

// `offset` is in bytes from the first instruction. Where the instruction has no location, the line of the nearest one before it that has.
// 0: the table cannot be read, or has no line up to there.
int LineAt(SafeMemory* memory, std::uintptr_t table, std::size_t bytes, int first_line, std::size_t offset) noexcept;

}  // namespace cuaudit::python
