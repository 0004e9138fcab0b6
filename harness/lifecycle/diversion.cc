// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "harness/lifecycle/diversion.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/shim/gate.h"
#include "include/cuaudit/block.h"
#include "include/cuaudit/mark.h"

namespace cuaudit::harness {
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

bool Diversion::present() noexcept { return DropIn() != nullptr && Divert(current); }

const void* Diversion::DropInCode() noexcept { return reinterpret_cast<const void*>(DropIn()); }

const char* Diversion::DropInPath() noexcept {
  Dl_info info = {};
  return DropIn() != nullptr && dladdr(reinterpret_cast<const void*>(DropIn()), &info) != 0 ? info.dli_fname : nullptr;
}

Diversion::Diversion(driver::DriverRef driver) noexcept : before_(current) { (void)Divert(driver); }

Diversion::~Diversion() { (void)Divert(before_); }

bool NoteBlock(driver::DriverRef driver, faults::MarkKind kind, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (driver.table == nullptr || address == 0) return false;
  if (driver.table != faults::Driver(nullptr).table) {
    if (kind == faults::MarkKind::BlockOut) blocks_unheard.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  static_cast<faults::Gate*>(driver.self)->Block(kind, address, bytes);
  return true;
}

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
