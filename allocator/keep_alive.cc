// SPDX-License-Identifier: MIT
// Blocks that are kept until an event of the caller's.
#include "allocator/core.h"
#include "allocator/driver_scope.h"
#include "allocator/errors.h"

namespace cuaudit::alloc {

// One stream per device waits for the caller's events, so they need not outlive the call; later ones stand behind earlier ones.
CUresult Core::MakeKeeper(Device* device) noexcept {
  {
    const Held held(device->keeper_lock);
    if (device->keeper_record != nullptr) return CUDA_SUCCESS;
  }
  CUstream stream = nullptr;
  unsigned long long id = 0;
  CurrentContext current(driver, device->context);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  StreamRecord* record = nullptr;
  if (result == CUDA_SUCCESS) result = driver.StreamGetId(stream, &id);
  if (result == CUDA_SUCCESS) result = MakeStream(id, stream, device->context, &record);
  if (result == CUDA_SUCCESS) {
    const Held held(device->keeper_lock);
    if (device->keeper_record == nullptr) {
      device->keeper_record = record;
      device->keeper = stream;
      stream = nullptr;
    }
  }
  if (stream != nullptr && driver.StreamDestroy(stream) != CUDA_SUCCESS) device->refused.fetch_add(1, std::memory_order_relaxed);
  const CUresult left = current.Leave();
  return result != CUDA_SUCCESS ? result : left;
}

CUresult Core::KeepAliveUntil(CUdeviceptr address, CUevent event) noexcept {
  if (address == 0) return CUDA_SUCCESS;
  CUresult error = Usable("KeepAliveUntil");
  if (error != CUDA_SUCCESS) return error;
  Block* const block = Edit(address, "KeepAliveUntil", &error);
  if (block == nullptr) return error;
  Device* const device = block->arena.load(std::memory_order_relaxed)->device;
  const bool room = block->uses.Reserve(block->uses.size() + 1 + RoomBeyond(block));
  EndEdit(block, 0);
  if (!room) return Refuse(CUDA_ERROR_OUT_OF_MEMORY, "KeepAliveUntil: no host memory");
  CUresult result = MakeKeeper(device);
  if (result != CUDA_SUCCESS) return Note(result);
  CurrentContext current(driver, device->context);
  if (current.result() != CUDA_SUCCESS) return Note(current.result());
  result = driver.StreamWaitEvent(device->keeper, event, 0);
  if (result != CUDA_SUCCESS) return Note(Refuse(result, "KeepAliveUntil: event %p cannot be waited for", static_cast<void*>(event)));
  std::uint64_t sequence = 0;
  result = device->keeper_record->Record(driver, device->keeper, &sequence);
  std::uint64_t before = 0;
  if (result == CUDA_SUCCESS && EditFound(block, address, "KeepAliveUntil", &result) != nullptr)
    result = AttachUse(block, "KeepAliveUntil", device->keeper_record, sequence, &before);
  if (before != 0) CountUse(&ThreadCache::uses_merged, &uses_merged);
  if (result == CUDA_SUCCESS && Traced()) TraceUse(address, device->keeper_record, sequence);
  const CUresult left = current.Leave();
  return Note(result != CUDA_SUCCESS ? result : left);
}

}  // namespace cuaudit::alloc
