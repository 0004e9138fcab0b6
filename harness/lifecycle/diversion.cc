// SPDX-License-Identifier: MIT
#include "harness/lifecycle/diversion.h"

#include <dlfcn.h>

#include <cstdint>

#include "faults/driver/call_id.h"

namespace cuaudit::harness {
namespace {

// 1: the calls of the process go to that driver from now on; a null table ends it.
using Divert = int (*)(const void* table, void* self, std::uint64_t digest);

Divert DropIn() noexcept {
  static const auto divert = reinterpret_cast<Divert>(dlsym(RTLD_DEFAULT, "cuaudit_divert"));
  return divert;
}

}  // namespace

bool Diversion::present() noexcept { return DropIn() != nullptr && DropIn()(nullptr, nullptr, driver::TableDigest()) != 0; }

Diversion::Diversion(driver::DriverRef driver) noexcept {
  if (DropIn() != nullptr) DropIn()(driver.table, driver.self, driver::TableDigest());
}

Diversion::~Diversion() {
  if (DropIn() != nullptr) DropIn()(nullptr, nullptr, driver::TableDigest());
}

}  // namespace cuaudit::harness
