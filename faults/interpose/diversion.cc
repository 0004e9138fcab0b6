// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/interpose/diversion.h"

#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/interpose/process.h"

namespace cuaudit::faults {

constinit std::atomic<const driver::DriverRef*> diversion{nullptr};

namespace {

// Two slots, used in turn, so that a reader of the previous diversion never sees a half-written one.
constinit driver::DriverRef room[2];
constinit unsigned used = 0;

}  // namespace
}  // namespace cuaudit::faults

// A null table ends the diversion. Returns 1; or 0, and changes nothing, when the caller was built from other headers.
extern "C" __attribute__((visibility("default"))) int cuaudit_divert(const void* table, void* self, std::uint64_t digest) {
  using namespace cuaudit::faults;
  if (digest != cuaudit::driver::TableDigest()) return 0;
  if (table == nullptr) {
    diversion.store(nullptr, std::memory_order_release);
    return 1;
  }
  cuaudit::driver::DriverRef& next = room[++used % 2];
  next = {static_cast<const cuaudit::driver::DriverTable*>(table), self};
  diversion.store(&next, std::memory_order_release);
  return 1;
}

// Returns the process's own gate, to which calls go without a diversion. Opens the driver. Returns as cuaudit_divert.
extern "C" __attribute__((visibility("default"))) int cuaudit_undiverted(const void** table, void** self, std::uint64_t digest) {
  using namespace cuaudit::faults;
  if (digest != cuaudit::driver::TableDigest()) return 0;
  const cuaudit::driver::DriverRef own = Driver(&ProcessGate());
  *table = own.table;
  *self = own.self;
  return 1;
}
