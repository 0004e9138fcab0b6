// SPDX-License-Identifier: MIT
// driver_choice.h: finds out what the machine offers and chooses the driver of a run, and the GPUs that CTest has reserved for it.
//
//   Threads   one thread.
//   Errors    Status: a genuine driver was asked for and is missing, or the drop-in libraries are not installed beside the tool.
//   Faults    loads no driver.
#pragma once

#include <string>
#include <vector>

#include "harness/options/options.h"
#include "harness/process/program.h"
#include "harness/process/status.h"

namespace cuaudit::harness {

struct Machine {
  std::string drop_in_dir;                  // <tool>/../lib/cuaudit
  bool drop_in = false;                     // libcuda.so.1 exists there
  std::string cudart_dir;                   // cuaudit's own CUDA runtime; empty: none
  std::vector<std::string> cudart_missing;  // files of the runtime that are missing
  bool host_drop_in = false;                // libcuaudit_host.so and libcuaudit_host_basic.so both exist
  std::string genuine_driver;               // absolute path; empty: none
  std::vector<std::string> device_nodes;
};

// The file of cuaudit's own CUDA runtime that replaces the one of this soname: of the same major version. Empty when there is none.
std::string OwnRuntime(const Machine& machine, const std::string& soname);

// `real_driver` is the user's choice of a genuine driver; empty: the one that the loader finds.
Result<Machine> LookAround(const std::string& real_driver);

struct ChosenDriver {
  DriverKind driver = DriverKind::Simulated;
  std::string why;
};
Result<ChosenDriver> ChooseDriver(const std::string& wish, const Machine& machine);

// An error when the orders of an audit are in this environment: other orders would end it unseen.
Status CheckNoAuditHere();

// The GPUs that CTest has reserved for this test (RESOURCE_GROUPS and ctest --resource-spec-file).
//
//   Errors    one line that names the variable.
//   Sources   ctest(1), "Resource Allocation": CTEST_RESOURCE_GROUP_COUNT, CTEST_RESOURCE_GROUP_<n>, CTEST_RESOURCE_GROUP_<n>_GPUS.

// The value for CUDA_VISIBLE_DEVICES: "0,2". Empty when CTest has reserved none.
Result<std::string> ReservedGpus();

}  // namespace cuaudit::harness
