// SPDX-License-Identifier: MIT
// program.h: finds the file that a command names, what the file needs to be audited, and the environment in which the drop-in libraries
// enter it.
//
//   Errors    Status in the words of a shell: not found, is a directory, not executable. A file that is no ELF (a script) is no error.
//   Source    execvp(3) for the search; the ELF gABI for the dynamic section.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"
#include "reports/run.h"

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

// Builds the environment in which the drop-in libraries enter a program and find their orders.
//
//   Threads   reads environ; no other thread may change it meanwhile.
//   Errors    Status when the user's environment already has orders in CUAUDIT_OPTIONS.

using report::DriverKind;

// Host resources to watch: none, the cheap ones, or heap blocks as well.
enum class HostProbes : std::uint8_t { None, Basic, Heap };

// What is the same for every run of one command.
struct LaunchOptions {
  std::string drop_in_dir;  // absolute; holds libcuda.so.1, libcuda.so, libcuaudit_host.so, libcuaudit_host_basic.so
  std::string cudart_dir;   // absolute; holds cuaudit's own CUDA runtime for the simulated driver; empty: none
  std::string cudart;       // the file of that runtime that the program needs by name; preloaded before any search path
  DriverKind driver = DriverKind::Simulated;
  std::string genuine_driver;  // absolute path of libcuda
  bool pinned_scope = true;
  std::uint32_t stack_depth = 16;
  bool stacks_of_objects_only = false;  // no stacks for calls that neither acquire nor release
  HostProbes host_probes = HostProbes::None;
  std::string world;  // options of the simulated driver: "schedule=fifo;devices=2"
};

// The library with these probes; empty for none.
std::string_view LibraryOf(HostProbes probes) noexcept;

// The value of CUAUDIT_OPTIONS: "journal=PATH;driver=sim;scope=pinned;fault=...".
std::string OptionsText(const LaunchOptions& options, const std::string& journal, std::span<const std::string> faults);

// `base` as NAME=VALUE lines with LD_LIBRARY_PATH, LD_PRELOAD and CUAUDIT_OPTIONS set. Entries of the user come after those of cuaudit.
std::vector<std::string> MakeEnvironment(const LaunchOptions& options, const std::string& asan_library, const std::string& options_text,
                                         std::span<const std::string> base);

// Checks the installation path. The loader splits its lists at spaces, colons and semicolons, so the path must contain none.
Status CheckDropInPath(const std::string& drop_in_dir);

// A variable of the environment of this process; empty when it is not set.
std::string VariableOf(const char* name);

// The environment of this process; an error when CUAUDIT_OPTIONS is set and not empty.
Result<std::vector<std::string>> CurrentEnvironment();

}  // namespace cuaudit::harness
