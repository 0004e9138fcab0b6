// SPDX-License-Identifier: MIT
// test_resources.h: the GPUs that CTest has reserved for this test (RESOURCE_GROUPS and ctest --resource-spec-file).
//
//   Errors    one line that names the variable.
//   Sources   ctest(1), "Resource Allocation": CTEST_RESOURCE_GROUP_COUNT, CTEST_RESOURCE_GROUP_<n>, CTEST_RESOURCE_GROUP_<n>_GPUS.
#pragma once

#include <string>

#include "harness/process/status.h"

namespace cuaudit::harness {

// The value for CUDA_VISIBLE_DEVICES: "0,2". Empty when CTest has reserved none.
Result<std::string> ReservedGpus();

}  // namespace cuaudit::harness
