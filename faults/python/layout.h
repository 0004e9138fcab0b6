// SPDX-License-Identifier: MIT
// layout.h: where CPython keeps what belongs to a call stack, for each version that is read. Offsets are in bytes.
//
// CPython 3.13 and newer carry a table of their own at the start of _PyRuntime (_Py_DebugOffsets). For 3.11 and 3.12 the offsets are those
// of the headers; they are the same in all builds of a version that keep the object headers as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/python/safe_memory.h"

struct dl_phdr_info;

namespace cuaudit::python {

struct Layout {
  // In _PyRuntime and in an interpreter: the first interpreter, the next one, its first thread.
  std::uint32_t first_interpreter;
  std::uint32_t next_interpreter;
  std::uint32_t first_thread;
  // In a thread state.
  std::uint32_t next_thread;
  std::uint32_t thread_interpreter;
  std::uint32_t thread_id;  // pthread_self()
  std::uint32_t current;    // the innermost frame; or, until 3.12, what holds it
  // Until 3.12 a variable of the function that interprets holds the frame. Offsets in that variable; `held` is false from 3.13 on.
  bool held;
  std::uint32_t held_frame;
  std::uint32_t held_previous;
  // In a frame.
  std::uint32_t code;
  std::uint32_t previous;
  std::uint32_t instruction;
  std::uint32_t owner;
  std::uint32_t last_of_call;  // 3.11 only: nonzero in the outermost frame that one call of the interpreting function runs; 0: none
  // In a code object.
  std::uint32_t filename;
  std::uint32_t qualname;
  std::uint32_t lines;
  std::uint32_t first_line;
  std::uint32_t instructions;
  // In a str and in a bytes object.
  std::uint32_t text_length;
  std::uint32_t text_state;
  std::uint32_t text_kind_shift;  // kind: 3 bits of the state from here on; then a bit that says compact, and one that says ASCII
  std::uint32_t ascii_characters;
  std::uint32_t other_characters;
  std::uint32_t bytes_size;
  std::uint32_t bytes_content;
};

// Bytes of a frame that are read at once; the fields above lie within.
inline constexpr std::uint32_t kFrameBytes = 80;

// Fills in the layout of the interpreter whose _PyRuntime lies at `runtime`. `version` is Py_Version. False: that version is not read.
[[nodiscard]] bool ChooseLayout(std::uint32_t version, std::uintptr_t runtime, SafeMemory* memory, Layout* layout) noexcept;

// Copies the characters of a Python str, as UTF-8. Writes the end of the text where there is not enough room for all of it, and a
// terminating zero. False: it cannot be read. `type` is the address of PyUnicode_Type.
[[nodiscard]] bool CopyText(SafeMemory* memory, const Layout& layout, std::uintptr_t type, std::uintptr_t text, char* to,
                            std::size_t room) noexcept;

// Finds exported symbols of one loaded object by name, without the loader.
//
// dlsym is no help: it does not see an interpreter that was loaded with RTLD_LOCAL, and a failing search allocates memory.

class LoadedSymbols {
 public:
  // `object` is as dl_iterate_phdr gives it, and stays loaded while this is used.
  explicit LoadedSymbols(const dl_phdr_info& object) noexcept;
  // Address of the symbol; 0: the object does not define it, or has no GNU hash table.
  std::uintptr_t Find(const char* name) const noexcept;

 private:
  std::uintptr_t base_ = 0;
  const std::uint32_t* hash_ = nullptr;
  const void* symbols_ = nullptr;
  const char* names_ = nullptr;
};

}  // namespace cuaudit::python
