// SPDX-License-Identifier: MIT
// chosen_driver.h: which driver a lifecycle of this process runs on, as its options or CUAUDIT_OPTIONS ask, and whether the driver is
// present.
//
//   Threads   safe; reads the environment and the file system each time.
//   Errors    Status for an impossible choice, such as a named driver that is no file. A missing driver is no error but
//             AuditOutcome::NoDevice.
//   Faults    loads no driver.
#pragma once

#include <string>

#include "harness/process/status.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

struct LifecycleDriver {
  AuditedDriver driver = AuditedDriver::Simulated;  // never Chosen
  std::string path;                                 // path of a genuine driver
  std::string why_not;                              // why the genuine driver that was asked for cannot answer; empty: it may
  std::string instead;                              // with driver=auto: why the simulated driver was taken; else empty
};

// With `wished` Chosen: the driver in CUAUDIT_OPTIONS ("driver=real", "driver=auto"), otherwise the simulated one.
Result<LifecycleDriver> ChooseDriver(AuditedDriver wished);

bool IsGenuine(AuditedDriver wished);

// False when the lifecycle cannot be run. The reason is then in the audit.
bool DriverIsHere(AuditedDriver wished, Audit* audit);

}  // namespace cuaudit::harness
