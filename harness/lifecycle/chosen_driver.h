// SPDX-License-Identifier: MIT
// chosen_driver.h: which driver a lifecycle of this process runs on, as its options or CUAUDIT_OPTIONS ask, and how calls by name are led
// there.
//
//   Threads   safe; reads the environment and the file system each time.
//   Errors    Status for an impossible choice, such as a named driver that is no file. A missing driver is no error but
//             AuditOutcome::NoDevice.
//   Faults    loads no driver.
#pragma once

#include <cstdint>
#include <string>

#include "faults/driver/driver_ref.h"
#include "harness/ledger/rules.h"
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

// While a Diversion exists, calls that the program makes by name (cuMemAlloc) go where its DriverRef goes, if the drop-in
// library is in the process.
//
//   Owns      the drop-in's diversion, for its lifetime. The newest one is in force; when it ends, the one before is in force again.
//   Threads   made and destroyed by one thread, while no other thread is inside a driver call.
//   Errors    without the drop-in, or with one built from other headers, nothing is diverted: NoStepCalled() says so.
//   Source    faults/interpose exports cuaudit_divert, cuaudit_undiverted and cuaudit_simulates.

class Diversion {
 public:
  explicit Diversion(driver::DriverRef driver) noexcept;
  ~Diversion();
  Diversion(const Diversion&) = delete;
  Diversion& operator=(const Diversion&) = delete;

  // The driver of calls by name without any diversion; a null table without a drop-in.
  static driver::DriverRef Undiverted() noexcept;
  // The kind of that driver: "simulated" or "genuine"; empty before the first call and without a drop-in.
  static std::string UndivertedDriver();
  // The driver of the current diversion; a null table without one.
  static driver::DriverRef Current() noexcept;
  // What to say of steps that made no driver call.
  static Details NoStepCalled();
  // An address in the drop-in, and the path of its file; null when there is none.
  static const void* DropInCode() noexcept;
  static const char* DropInPath() noexcept;

 private:
  driver::DriverRef before_;
};

// How many blocks pools have said to hand out through a table that is not a gate's, which cannot be judged.
std::uint64_t BlocksUnheard() noexcept;

}  // namespace cuaudit::harness
