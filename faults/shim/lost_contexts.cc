// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/lost_contexts.h"

#include <string.h>

#include "faults/driver/result.h"

namespace cuaudit::faults {

using driver::Effect;

namespace {

std::uint64_t Current(driver::DriverRef driver) noexcept {
  CUcontext context = nullptr;
  return driver.CtxGetCurrent(&context) == CUDA_SUCCESS ? reinterpret_cast<std::uintptr_t>(context) : 0;
}

// One reference more and one less of an active primary context changes nothing, and shows its handle.
int PrimaryDevice(driver::DriverRef driver, std::uint64_t context) noexcept {
  int count = 0;
  if (driver.DeviceGetCount(&count) != CUDA_SUCCESS) return -1;
  for (int device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    CUcontext primary = nullptr;
    if (driver.DevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0) continue;
    if (driver.DevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) continue;
    (void)driver.DevicePrimaryCtxRelease(device);
    if (reinterpret_cast<std::uintptr_t>(primary) == context) return device;
  }
  return -1;
}

// Of the devices whose primary context is active, one bit each; false when there is no context at all.
bool ActiveDevices(driver::DriverRef driver, std::uint64_t* devices) noexcept {
  int count = 0;
  if (driver.DeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (int device = 0; device < count && device < 64; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (driver.DevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0) *devices |= std::uint64_t{1} << device;
  }
  return true;
}

}  // namespace

Loss LostContexts::Unpack(std::uint32_t loss) noexcept {
  return {static_cast<CUresult>(loss & 0xffff), static_cast<std::uint16_t>(loss >> 16)};
}

void LostContexts::Lose(driver::DriverRef driver, Loss loss, std::uint64_t unreferenced) noexcept {
  const std::uint32_t packed = static_cast<std::uint32_t>(loss.fault) << 16 | static_cast<std::uint32_t>(loss.code);
  const std::uint64_t context = Current(driver);
  if (context != 0) {
    const int device = PrimaryDevice(driver, context);
    for (Row& row : row_) {
      std::uint64_t free = 0;
      if (row.context.load(std::memory_order_relaxed) != context && !row.context.compare_exchange_strong(free, context)) continue;
      row.device.store(device, std::memory_order_relaxed);
      row.loss.store(packed, std::memory_order_release);
      any_.store(true, std::memory_order_release);
      return;
    }
  }
  std::uint64_t active = 0;
  if (!ActiveDevices(driver, &active)) return;  // before cuInit nothing can be lost
  for (Row& row : row_) {
    if (row.loss.load(std::memory_order_relaxed) == 0) Clear(row);
  }
  spared_devices_.store(~active | unreferenced, std::memory_order_relaxed);
  everywhere_.store(packed, std::memory_order_relaxed);
  any_.store(true, std::memory_order_release);
}

Loss LostContexts::Find(driver::DriverRef driver) const noexcept {
  const std::uint64_t context = Current(driver);
  for (const Row& row : row_) {
    if (context != 0 && row.context.load(std::memory_order_relaxed) == context) return Unpack(row.loss.load(std::memory_order_acquire));
  }
  const std::uint32_t all = everywhere_.load(std::memory_order_relaxed);
  const std::uint64_t spared = all == 0 ? 0 : spared_devices_.load(std::memory_order_relaxed);
  if (context == 0 && ~spared == 0) return Loss();  // no primary context was lost, so the call is none's
  const int device = spared == 0 || context == 0 ? -1 : PrimaryDevice(driver, context);
  return device >= 0 && (spared >> device & 1) != 0 ? Loss() : Unpack(all);
}

void LostContexts::Clear(Row& row) noexcept {
  row.loss.store(0, std::memory_order_relaxed);
  row.device.store(-1, std::memory_order_relaxed);
  row.context.store(0, std::memory_order_release);
}

// A lost context answers every call that needs one. What names a device instead of a context still works, and so does what ends or
// resets the context or makes another one current; the headers document INVALID_CONTEXT for some of those too.
bool LostContexts::Concerns(const driver::EffectRow& row) noexcept {
  if (driver::MovesContext(row.effect)) return false;
  if (row.base == driver::BaseId::CtxGetCurrent || strncmp(driver::Name(row.base).data(), "cuDevice", 8) == 0) return false;
  return driver::IsLegalCode(row.base, CUDA_ERROR_INVALID_CONTEXT);
}

void LostContexts::Change(Effect effect, const Passage& passage) noexcept {
  if (effect == Effect::CreatesContext && any() && passage.value[0] != 0) {
    std::uint64_t made = 0;
    memcpy(&made, reinterpret_cast<const void*>(passage.value[0]), sizeof(made));
    Begin(made);
  }
  if (effect == Effect::DestroysContext) ForgetContext(passage.value[0]);
  if (effect == Effect::ResetsPrimary) ForgetPrimary(static_cast<int>(passage.value[0]));
}

void LostContexts::Begin(std::uint64_t context) noexcept {
  if (context == 0 || everywhere_.load(std::memory_order_relaxed) == 0) return;
  Row* room = nullptr;
  for (Row& row : row_) {
    const bool own = row.context.load(std::memory_order_relaxed) == context;
    // Whoever has no row is lost, so the row of a lost one can be had.
    const bool free = row.context.load(std::memory_order_relaxed) == 0 || row.loss.load(std::memory_order_relaxed) != 0;
    if (own || (free && room == nullptr)) room = &row;
    if (own) break;
  }
  if (room == nullptr) {
    everywhere_.store(0, std::memory_order_relaxed);
    return;
  }
  Clear(*room);
  room->context.store(context, std::memory_order_release);
}

void LostContexts::ForgetContext(std::uint64_t context) noexcept {
  for (Row& row : row_) {
    if (context != 0 && row.context.load(std::memory_order_relaxed) == context) Clear(row);
  }
  Begin(context);  // its handle may come back
}

void LostContexts::ForgetPrimary(int device) noexcept {
  for (Row& row : row_) {
    if (row.device.load(std::memory_order_relaxed) == device) Clear(row);
  }
  if (device >= 0 && device < 64) spared_devices_.fetch_or(std::uint64_t{1} << device, std::memory_order_relaxed);
}

void LostContexts::ForgetAll() noexcept {
  everywhere_.store(0, std::memory_order_relaxed);
  spared_devices_.store(0, std::memory_order_relaxed);
  for (Row& row : row_) Clear(row);
  any_.store(false, std::memory_order_relaxed);
}

}  // namespace cuaudit::faults
