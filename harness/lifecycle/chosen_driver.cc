// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/lifecycle/chosen_driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>

#include "faults/driver/call_id.h"
#include "faults/driver/genuine_driver.h"
#include "faults/shim/gate.h"
#include "include/cuaudit/block.h"
#include "include/cuaudit/mark.h"

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

namespace {

// Answers 1 when the calls of the process go to that driver from now on. A null table ends the diversion.
using DivertCall = int (*)(const void* table, void* self, std::uint64_t digest);

DivertCall DropIn() noexcept {
  static const auto divert = reinterpret_cast<DivertCall>(dlsym(RTLD_DEFAULT, "cuaudit_divert"));
  return divert;
}

driver::DriverRef current;  // a null table: no diversion
constinit std::atomic<std::uint64_t> blocks_unheard{0};

bool Divert(driver::DriverRef driver) noexcept {
  current = driver;
  return DropIn() != nullptr && DropIn()(driver.table, driver.self, driver::TableDigest()) != 0;
}

// Passes a pool's statement about a block of its own to the gate behind `driver`. False, and nothing is done, when there is no gate.
bool NoteBlock(driver::DriverRef driver, faults::MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (driver.table == nullptr || address == 0) return false;
  if (driver.table != faults::Driver(nullptr).table) {
    if (kind == faults::MarkKind::BlockOut) blocks_unheard.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  static_cast<faults::Gate*>(driver.self)->Block(kind, address, bytes);
  return true;
}

}  // namespace

driver::DriverRef Diversion::Undiverted() noexcept {
  using Ask = int (*)(const void** table, void** self, std::uint64_t digest);
  const auto ask = reinterpret_cast<Ask>(dlsym(RTLD_DEFAULT, "cuaudit_undiverted"));
  const void* table = nullptr;
  void* self = nullptr;
  if (ask == nullptr || ask(&table, &self, driver::TableDigest()) == 0) return {};
  return {static_cast<const driver::DriverTable*>(table), self};
}

std::string Diversion::UndivertedDriver() {
  const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "cuaudit_simulates"));
  const int simulates = ask == nullptr ? -1 : ask();
  return simulates < 0 ? "" : simulates == 1 ? "simulated" : "genuine";
}

driver::DriverRef Diversion::Current() noexcept { return current; }

Details Diversion::NoStepCalled() {
  Details why = {{Detail::NoStepCalled}};
  if (DropIn() == nullptr || !Divert(current)) why.push_back({Detail::ByNameUnseen});
  return why;
}

const void* Diversion::DropInCode() noexcept { return reinterpret_cast<const void*>(DropIn()); }

const char* Diversion::DropInPath() noexcept {
  Dl_info info = {};
  return DropIn() != nullptr && dladdr(reinterpret_cast<const void*>(DropIn()), &info) != 0 ? info.dli_fname : nullptr;
}

Diversion::Diversion(driver::DriverRef driver) noexcept : before_(current) { (void)Divert(driver); }

Diversion::~Diversion() { (void)Divert(before_); }

std::uint64_t BlocksUnheard() noexcept { return blocks_unheard.load(std::memory_order_relaxed); }

}  // namespace cuaudit::harness

namespace cuaudit {

void BlockOut(DriverRef driver, CUdeviceptr address, std::size_t bytes) noexcept {
  (void)harness::NoteBlock(driver, faults::MarkKind::BlockOut, address, bytes);
}

void BlockBack(DriverRef driver, CUdeviceptr address) noexcept {
  (void)harness::NoteBlock(driver, faults::MarkKind::BlockBack, address, 0);
}

}  // namespace cuaudit

// cuaudit/mark.h asks this function first.
extern "C" __attribute__((visibility("default"))) int cuaudit_watched_block(int what, std::uint64_t address, std::uint64_t bytes) {
  using cuaudit::faults::MarkKind;
  using cuaudit::harness::Diversion;
  const MarkKind kind = what == CUAUDIT_BLOCK_OUT ? MarkKind::BlockOut : MarkKind::BlockBack;
  return cuaudit::harness::NoteBlock(Diversion::Current(), kind, address, bytes) ? 1 : 0;
}
