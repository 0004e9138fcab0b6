// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/shim/pinned_contexts.h"

namespace cuaudit::faults {

void PinnedContexts::Pin(driver::DriverRef next, std::uint64_t device) noexcept {
  if (device >= kMaxDevices) return;
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((pinned_.fetch_or(bit, std::memory_order_acq_rel) & bit) != 0) return;
  CUcontext context = nullptr;
  if (next.DevicePrimaryCtxRetain(&context, static_cast<CUdevice>(device)) != CUDA_SUCCESS) {
    pinned_.fetch_and(~bit, std::memory_order_acq_rel);
  }
}

void PinnedContexts::NoteHeld(CUdevice device) noexcept {
  if (device >= 0 && static_cast<std::size_t>(device) < kMaxDevices) pinned_.fetch_or(std::uint64_t{1} << device);
}

int PinnedContexts::CountReference(driver::Effect effect, const Passage& passage) noexcept {
  if (effect == driver::Effect::RetainsPrimary && passage.value[1] < kMaxDevices)
    references_[passage.value[1]].fetch_add(1, std::memory_order_relaxed);
  if (effect != driver::Effect::ReleasesPrimary || passage.value[0] >= kMaxDevices) return -1;
  return references_[passage.value[0]].fetch_sub(1, std::memory_order_relaxed) <= 1 ? static_cast<int>(passage.value[0]) : -1;
}

std::uint64_t PinnedContexts::Unreferenced() const noexcept {
  std::uint64_t devices = 0;
  for (std::size_t device = 0; device < kMaxDevices; ++device) {
    if (references_[device].load(std::memory_order_relaxed) <= 0) devices |= std::uint64_t{1} << device;
  }
  return devices & pinned_.load(std::memory_order_relaxed);
}

}  // namespace cuaudit::faults
