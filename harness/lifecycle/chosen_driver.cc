// SPDX-License-Identifier: MIT
#include "harness/lifecycle/chosen_driver.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "faults/driver/find_driver.h"
#include "harness/lifecycle/diversion.h"

namespace cuaudit::harness {
namespace {

// The last value of a key in "key=value;key=value".
std::string_view Option(std::string_view key) {
  const char* const all = std::getenv("CUAUDIT_OPTIONS");
  std::string_view rest = all == nullptr ? std::string_view() : all;
  std::string_view value;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=') value = pair.substr(key.size() + 1);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return value;
}

Status FindGenuine(LifecycleDriver* chosen) {
  chosen->path = Option("real_driver");
  if (!chosen->path.empty()) {
    // A driver that the user names is used without the checks for a GPU.
    if (access(chosen->path.c_str(), R_OK) == 0) return {};
    return {Exit::Usage, "CUAUDIT_OPTIONS: real_driver=" + chosen->path + ": expected a file that can be read"};
  }
  char path[4096];
  if (!driver::FindGenuineDriver(Diversion::DropInPath(), path, sizeof(path))) {
    chosen->why_not = "no genuine libcuda.so.1 on this machine";
    return {};
  }
  chosen->path = path;
  for (const char* const node : {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"}) {
    if (access(node, F_OK) == 0) return {};
  }
  chosen->why_not = "no device node (/dev/nvidiactl, /dev/nvidia0 or /dev/dxg)";
  return {};
}

}  // namespace

Result<LifecycleDriver> ChooseDriver(AuditedDriver wished) {
  LifecycleDriver chosen;
  bool either = false;
  if (wished == AuditedDriver::Chosen) {
    const std::string_view asked = Option("driver");
    if (!asked.empty() && asked != "auto" && asked != "real" && asked != "sim") {
      return Status(Exit::Usage, "CUAUDIT_OPTIONS: driver=" + std::string(asked) + ": expected auto, real or sim");
    }
    either = asked == "auto";
    wished = asked == "real" || either ? AuditedDriver::Genuine : AuditedDriver::Simulated;
  }
  chosen.driver = wished;
  if (wished != AuditedDriver::Genuine) return chosen;
  Status status = FindGenuine(&chosen);
  if (!status.ok()) return status;
  if (!either || chosen.why_not.empty()) return chosen;
  LifecycleDriver simulated;
  simulated.instead = chosen.why_not;
  return simulated;
}

bool IsGenuine(AuditedDriver wished) {
  const Result<LifecycleDriver> chosen = ChooseDriver(wished);
  return chosen.ok() && chosen->driver == AuditedDriver::Genuine;
}

bool DriverIsHere(AuditedDriver wished, Audit* audit) {
  const Result<LifecycleDriver> chosen = ChooseDriver(wished);
  if (chosen.ok() && chosen->why_not.empty()) return true;
  audit->outcome = chosen.ok() ? AuditOutcome::NoDevice : AuditOutcome::Error;
  audit->message = chosen.ok() ? chosen->why_not : chosen.status().message();
  return false;
}

}  // namespace cuaudit::harness
