// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include <fcntl.h>
#include <unistd.h>

#include "faults/sim/entry/entry.h"
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/memory/share.h"

namespace cuaudit::sim {
namespace {

constexpr CUmemAllocationHandleType kFileDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// What the descriptor of a pool holds.
struct PoolFile {
  ShareName name;
  CUmemPoolProps properties;
};

}  // namespace

CUresult api::MemPoolExportToShareableHandle(Call& call, void* out, CUmemoryPool handle, CUmemAllocationHandleType type,
                                             unsigned long long flags) {
  World& world = call.world;
  Pool* const pool = world.Find<Pool>(handle);
  if (out == nullptr || pool == nullptr || flags != 0 || type != kFileDescriptor || pool->properties.handleTypes != kFileDescriptor)
    return CUDA_ERROR_INVALID_VALUE;
  if (pool->share == 0) pool->share = ShareSlot(world, ShareKind::Pool);
  if (pool->share == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const PoolFile contents{NameShare(world, pool->share), pool->properties};
  const int file = MakeShareFile(sizeof(contents));
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pwrite(file, &contents, sizeof(contents), 0) != static_cast<ssize_t>(sizeof(contents))) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::memcpy(out, &file, sizeof(file));
  return CUDA_SUCCESS;
}

CUresult api::MemPoolImportFromShareableHandle(Call& call, CUmemoryPool* out, void* os_handle, CUmemAllocationHandleType type,
                                               unsigned long long flags) {
  if (out == nullptr || type != kFileDescriptor || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  PoolFile contents{};
  const int file = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  const bool whole = file >= 0 && pread(file, &contents, sizeof(contents), 0) == static_cast<ssize_t>(sizeof(contents));
  if (!whole || contents.name.kind != ShareKind::Pool || !IsShareAlive(contents.name)) return CUDA_ERROR_UNKNOWN;
  contents.properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;  // nobody exports it again
  if (CheckPool(call.world, &contents.properties) != CUDA_SUCCESS) return CUDA_ERROR_UNKNOWN;
  Pool* const pool = MakePool(call.world, contents.properties, false);
  if (pool == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->imported = true;
  pool->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
  pool->origin = contents.name;
  *out = ToHandle<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

CUresult api::MemPoolExportPointer(Call& call, CUmemPoolPtrExportData* out, CUdeviceptr address) {
  Range* const range = call.world.ranges.Find(address);
  if (out == nullptr || range == nullptr || range->base != address || range->freeing) return CUDA_ERROR_INVALID_VALUE;
  // Memory of a pool that was not exported cannot be imported by anybody.
  if (range->pool == nullptr || range->pool->share == 0 || range->import != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!ShareRange(call.world, range, ShareKind::PoolMemory, range->pool->share)) return CUDA_ERROR_OUT_OF_MEMORY;
  const ShareName name = NameShare(call.world, range->share);
  *out = {};
  std::memcpy(out, &name, sizeof(name));
  return CUDA_SUCCESS;
}

CUresult api::MemPoolImportPointer(Call& call, CUdeviceptr* out, CUmemoryPool handle, CUmemPoolPtrExportData* data) {
  World& world = call.world;
  Pool* const pool = world.Find<Pool>(handle);
  if (out == nullptr || data == nullptr || pool == nullptr || !pool->imported) return CUDA_ERROR_INVALID_VALUE;
  ShareName name{};
  std::memcpy(&name, data, sizeof(name));
  const bool of_pool = name.kind == ShareKind::PoolMemory && name.nonce == pool->origin.nonce && name.group == pool->origin.slot + 1;
  if (!of_pool) return CUDA_ERROR_INVALID_VALUE;
  if (const Import* const known = FindImport(world, name); known != nullptr) {  // the same address, and still one free
    if (known->range->pool != pool || known->range->freeing) return CUDA_ERROR_INVALID_VALUE;
    *out = known->range->base;
    return CUDA_SUCCESS;
  }
  if (call.context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Import* const import = OpenShare(world, name);
  if (import == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Range* const range = TakeElsewhere(world, call.context, name.size, Kind::StreamOrderedMemory, import->bytes);
  if (range == nullptr) {
    CloseShare(world, import);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  range->pool = pool;
  range->import = import;
  import->range = range;
  import->opens = 1;
  ++pool->allocations;
  *out = range->base;
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
