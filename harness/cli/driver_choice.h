// SPDX-License-Identifier: MIT
// driver_choice.h: what the machine offers, and which driver a run takes.
//
//   Owns      its strings.
//   Threads   one thread.
//   Errors    Status: a genuine driver was asked for and is not there; the drop-in libraries are not installed beside the tool.
//   Faults    makes no driver calls and loads no driver.
#pragma once

#include <string>
#include <vector>

#include "harness/options/options.h"
#include "harness/sweep/environment.h"
#include "harness/sweep/status.h"

namespace cuaudit::harness {

struct Machine {
  std::string drop_in_dir;                  // <tool>/../lib/cuaudit
  bool drop_in = false;                     // libcuda.so.1 is there
  std::string cudart_dir;                   // cuaudit's own CUDA runtime, empty: none
  std::vector<std::string> cudart_missing;  // files of it that are not there
  bool host_drop_in = false;                // both libcuaudit_host.so and libcuaudit_host_basic.so are there
  std::string genuine_driver;               // absolute path, empty: none
  std::vector<std::string> device_nodes;
};

// The file of cuaudit's own CUDA runtime that stands in for this soname; empty: none does.
std::string OwnRuntime(const Machine& machine, const std::string& soname);

// `real_driver`: the user's own choice of a genuine driver, empty for the loader's.
Result<Machine> LookAround(const std::string& real_driver);

struct ChosenDriver {
  DriverChoice driver = DriverChoice::Simulated;
  std::string why;
};
Result<ChosenDriver> ChooseDriver(const std::string& wish, const Machine& machine);

}  // namespace cuaudit::harness
