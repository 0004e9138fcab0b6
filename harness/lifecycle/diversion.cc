// SPDX-License-Identifier: MIT
#include "harness/lifecycle/diversion.h"

#include <cstdint>

#include "faults/driver/call_id.h"

// True when the calls of the process go to that driver from now on; a null table ends it.
extern "C" __attribute__((weak)) int cuaudit_divert(const void* table, void* self, std::uint64_t digest);

namespace cuaudit::harness {

bool Diversion::present() noexcept { return cuaudit_divert != nullptr && cuaudit_divert(nullptr, nullptr, driver::TableDigest()) != 0; }

Diversion::Diversion(driver::DriverRef driver) noexcept {
  if (cuaudit_divert != nullptr) cuaudit_divert(driver.table, driver.self, driver::TableDigest());
}

Diversion::~Diversion() {
  if (cuaudit_divert != nullptr) cuaudit_divert(nullptr, nullptr, driver::TableDigest());
}

}  // namespace cuaudit::harness
