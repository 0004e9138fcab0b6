// SPDX-License-Identifier: MIT
// environment.h: the environment in which the drop-in libraries enter a program and find their orders.
//
//   Owns      its strings.
//   Threads   reads environ; no other thread may change it meanwhile.
//   Errors    Status when the user's own environment already carries orders in CUAUDIT_OPTIONS.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/status.h"

namespace cuaudit::harness {

enum class DriverChoice : std::uint8_t { Simulated, Genuine };

// Which host resources are looked at: none, all that is cheap, or heap blocks too.
enum class HostProbes : std::uint8_t { None, Basic, Heap };

// What is the same for every run of one command.
struct LaunchOptions {
  std::string drop_in_dir;  // absolute; holds libcuda.so.1, libcuda.so, libcuaudit_host.so, libcuaudit_host_basic.so
  std::string cudart_dir;   // absolute; holds cuaudit's own CUDA runtime, which serves the simulated driver only; empty: none
  std::string cudart;       // of that runtime, the file that the program needs by name; preloaded, so that no search path is before it
  DriverChoice driver = DriverChoice::Simulated;
  std::string real_driver;  // absolute path of the genuine libcuda
  bool pinned_scope = true;
  std::uint32_t stack_depth = 16;
  bool stacks_of_objects_only = false;  // no stacks for calls that neither acquire nor release
  HostProbes host_probes = HostProbes::None;
  std::string world;  // options of the simulated driver: "schedule=fifo;devices=2"
};

std::string_view Name(DriverChoice driver) noexcept;  // "sim", "real"

// The library that has them; empty for none.
std::string_view LibraryOf(HostProbes probes) noexcept;

// The value of CUAUDIT_OPTIONS: "journal=PATH;driver=sim;scope=pinned;fault=...".
std::string OptionsText(const LaunchOptions& options, const std::string& journal, std::span<const std::string> faults);

// `base` as NAME=VALUE lines with LD_LIBRARY_PATH, LD_PRELOAD and CUAUDIT_OPTIONS set; the user's own entries stay behind ours.
std::vector<std::string> MakeEnvironment(const LaunchOptions& options, const std::string& asan_library, const std::string& options_text,
                                         std::span<const std::string> base);

// The loader splits its lists of libraries at spaces, colons and semicolons, so no installation directory may have one in its path.
Status CheckDropInPath(const std::string& drop_in_dir);

// This process's environment; an error when it holds a CUAUDIT_OPTIONS that is not empty.
Result<std::vector<std::string>> CurrentEnvironment();

}  // namespace cuaudit::harness
