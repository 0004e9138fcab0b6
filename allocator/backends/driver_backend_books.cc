// SPDX-License-Identifier: MIT
// What a DriverBackend tells about itself.
#include <algorithm>
#include <new>
#include <utility>

#include "allocator/backends/driver_backend.h"

namespace cuaudit::alloc {
namespace {

void Add(Stat* stat, std::int64_t amount) noexcept {
  stat->current += amount;
  stat->allocated += amount;
  stat->peak = std::max(stat->peak, stat->current);
}
void Take(Stat* stat, std::int64_t amount) noexcept {
  stat->current -= amount;
  stat->freed += amount;
}

// Runs `each` for the sum and for the block's own pool; the border is PyTorch's, so that figures compare.
template <class Each>
void ForPools(std::size_t requested, Each each) noexcept {
  each(static_cast<std::size_t>(PoolKind::All));
  each(static_cast<std::size_t>(requested <= kSmallLimit ? PoolKind::Small : PoolKind::Large));
}

}  // namespace

void DriverBackend::CountAllocation(Device* device, const Block& block) noexcept {
  Statistics& s = device->statistics;
  const auto size = static_cast<std::int64_t>(block.size);
  ForPools(block.requested, [&](std::size_t pool) {
    Add(&s.allocation[pool], 1);
    Add(&s.active[pool], 1);
    Add(&s.segment[pool], 1);
    Add(&s.allocated_bytes[pool], size);
    Add(&s.active_bytes[pool], size);
    Add(&s.reserved_bytes[pool], size);
    Add(&s.requested_bytes[pool], static_cast<std::int64_t>(block.requested));
  });
  ++s.num_device_alloc;
  ++s.served_grown;
}

void DriverBackend::CountFree(Device* device, const Block& block) noexcept {
  Statistics& s = device->statistics;
  const auto size = static_cast<std::int64_t>(block.size);
  ForPools(block.requested, [&](std::size_t pool) {
    Take(&s.allocation[pool], 1);
    Take(&s.active[pool], 1);
    Take(&s.segment[pool], 1);
    Take(&s.allocated_bytes[pool], size);
    Take(&s.active_bytes[pool], size);
    Take(&s.reserved_bytes[pool], size);
    Take(&s.requested_bytes[pool], static_cast<std::int64_t>(block.requested));
  });
}

bool DriverBackend::FindBlock(CUdeviceptr address, CUdeviceptr* base, std::size_t* size) const noexcept {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  --after;
  if (after->second.is_freed || address - after->first >= after->second.requested) return false;
  *base = after->first;
  if (size != nullptr) *size = after->second.requested;
  return true;
}

void DriverBackend::GetStatistics(int device_index, Statistics* out) const noexcept {
  *out = {};
  if (device_index < 0 || static_cast<std::size_t>(device_index) >= devices_.size()) return;
  const Device& device = devices_[static_cast<std::size_t>(device_index)];
  {
    const std::lock_guard lock(mutex_);
    *out = device.statistics;
  }
  if (!is_stream_ordered_) return;
  cuuint64_t now = 0;
  cuuint64_t high = 0;
  if (driver_.MemPoolGetAttribute(device.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &now) != CUDA_SUCCESS) return;
  if (driver_.MemPoolGetAttribute(device.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &high) != CUDA_SUCCESS) return;
  Stat& reserved = out->reserved_bytes[static_cast<std::size_t>(PoolKind::All)];
  reserved.current = static_cast<std::int64_t>(now);
  reserved.peak = static_cast<std::int64_t>(high);
}

void DriverBackend::ResetPeaks(int device_index) noexcept {
  if (device_index < 0 || static_cast<std::size_t>(device_index) >= devices_.size()) return;
  Device& device = devices_[static_cast<std::size_t>(device_index)];
  if (is_stream_ordered_) {
    cuuint64_t none = 0;  // the only value the driver takes
    (void)driver_.MemPoolSetAttribute(device.pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &none);
  }
  const std::lock_guard lock(mutex_);
  Statistics& s = device.statistics;
  for (StatArray* stats :
       {&s.allocation, &s.segment, &s.active, &s.allocated_bytes, &s.reserved_bytes, &s.active_bytes, &s.requested_bytes}) {
    for (Stat& stat : *stats) stat.peak = stat.current;
  }
}

void DriverBackend::ResetAccumulated(int device_index) noexcept {
  if (device_index < 0 || static_cast<std::size_t>(device_index) >= devices_.size()) return;
  const std::lock_guard lock(mutex_);
  Statistics& s = devices_[static_cast<std::size_t>(device_index)].statistics;
  for (StatArray* stats :
       {&s.allocation, &s.segment, &s.active, &s.allocated_bytes, &s.reserved_bytes, &s.active_bytes, &s.requested_bytes}) {
    for (Stat& stat : *stats) stat.allocated = stat.freed = 0;
  }
  s.num_ooms = s.num_alloc_retries = s.num_device_alloc = s.num_device_free = 0;
}

CUresult DriverBackend::TakeSnapshot(Snapshot* out) const noexcept {
  out->segments.clear();
  const std::lock_guard lock(mutex_);
  try {
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      for (const auto& [address, block] : blocks_) {
        if (static_cast<std::size_t>(block.device) != device) continue;
        SnapshotSegment segment;
        segment.device = block.device;
        segment.address = address;
        segment.total_size = segment.active_size = block.size;
        segment.allocated_size = block.is_freed ? 0 : block.size;
        segment.requested_size = block.requested;
        segment.stream = reinterpret_cast<std::uintptr_t>(block.stream);
        segment.stream_handle = block.stream;
        segment.large = block.requested > kSmallLimit;
        SnapshotBlock shown;
        shown.address = address;
        shown.size = block.size;
        shown.requested = block.requested;
        shown.state = block.is_freed ? BlockState::ActivePendingFree : BlockState::ActiveAllocated;
        shown.stream = segment.stream;
        for (const CUstream user : block.users) {
          PendingUse use;
          use.stream = reinterpret_cast<std::uintptr_t>(user);
          use.handle = user;
          shown.uses.push_back(use);
        }
        segment.blocks.push_back(std::move(shown));
        out->segments.push_back(std::move(segment));
      }
    }
    return CUDA_SUCCESS;
  } catch (const std::bad_alloc&) {
    out->segments.clear();
    return Fail(CUDA_ERROR_OUT_OF_MEMORY, "TakeSnapshot: host memory");
  }
}

}  // namespace cuaudit::alloc
