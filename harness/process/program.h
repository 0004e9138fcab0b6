// SPDX-License-Identifier: MIT
// program.h: finds the file that a command names, and what the file needs to be audited.
//
//   Errors    Status in the words of a shell: not found, is a directory, not executable. A file that is no ELF (a script) is no error.
//   Source    execvp(3) for the search; the ELF gABI for the dynamic section.
#pragma once

#include <string>
#include <string_view>

#include "harness/process/status.h"

namespace cuaudit::harness {

struct Program {
  std::string path;          // as execv takes it
  std::string asan_library;  // soname of gcc's AddressSanitizer, if needed; it must come first in LD_PRELOAD
  std::string cudart;        // soname of the shared CUDA runtime that the program needs: "libcudart.so.13"; empty: none
  bool is_static = false;    // an ELF without interpreter, which no drop-in library can enter
};

// Searches PATH as execvp does. A name with a slash is taken as it is, or from `directory`, where the program will run; the path is then
// absolute.
Result<Program> ResolveProgram(const std::string& name, const std::string& directory = {});

// A path that a program in `directory` names, as this process names it. Empty: the program runs in the directory of this process.
std::string PathFrom(const std::string& directory, const std::string& path);

// Reads the fields above from the bytes of an ELF file. Other bytes leave them unset.
void ReadElf(std::string_view bytes, Program* program);

}  // namespace cuaudit::harness
