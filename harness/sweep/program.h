// SPDX-License-Identifier: MIT
// program.h: which file a command names, and what that file needs to be audited.
//
//   Threads   safe everywhere; no state.
//   Errors    Status in the words of a shell: not found, is a directory, not executable. A file that is no ELF (a script) is no error.
//   Faults    makes no driver calls.
//   Source    execvp(3) for the search; the ELF gABI for the dynamic section.
#pragma once

#include <string>
#include <string_view>

#include "harness/sweep/status.h"

namespace cuaudit::harness {

struct Program {
  std::string path;          // as execv takes it
  std::string asan_library;  // soname of gcc's AddressSanitizer when the program needs it; it must then come first in LD_PRELOAD
  std::string cudart;        // soname of the shared CUDA runtime that the program names itself: "libcudart.so.13"; empty: none
  bool is_static = false;    // an ELF without interpreter: no drop-in library can enter it
};

// Searches PATH as execvp does; a name with a slash is taken as it is.
Result<Program> ResolveProgram(const std::string& name);

// Reads the facts above from the bytes of an ELF file; anything else leaves them unset.
void ReadElf(std::string_view bytes, Program* program);

}  // namespace cuaudit::harness
