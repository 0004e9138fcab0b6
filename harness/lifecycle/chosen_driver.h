// SPDX-License-Identifier: MIT
// chosen_driver.h: which driver a lifecycle of this process runs on, as its options or CUAUDIT_OPTIONS ask, and whether it is there.
//
//   Threads   safe; reads the environment and the file system each time.
//   Errors    a Status for a choice that nobody can follow, such as a named driver that is no file; a driver that is not here
//             is no error but AuditOutcome::NoDevice.
//   Faults    makes no driver calls and loads nothing.
#pragma once

#include <string>

#include "harness/sweep/status.h"
#include "include/cuaudit/lifecycle.h"

namespace cuaudit::harness {

struct ChosenDriver {
  AuditedDriver driver = AuditedDriver::Simulated;  // never Chosen
  std::string path;                                 // of a genuine one
  std::string why_not;                              // a genuine one is asked for and cannot answer; empty: it may
  std::string instead;                              // driver=auto: why it is the simulated one; otherwise empty
};

// `wished` Chosen: "driver=real" or "driver=auto" in CUAUDIT_OPTIONS, otherwise the simulated one.
Result<ChosenDriver> ChooseDriver(AuditedDriver wished);

bool IsGenuine(AuditedDriver wished);

// False when nothing can be asked of the lifecycle; the reason is in the audit then.
bool DriverIsHere(AuditedDriver wished, Audit* audit);

}  // namespace cuaudit::harness
