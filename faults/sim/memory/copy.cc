// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"
#include "faults/sim/order/lifetime.h"

namespace cuaudit::sim {
namespace {

struct Side {
  CUmemorytype type;
  std::uint64_t base;
  CUarray array;
  std::uint64_t x, y, z, pitch, rows;
};

Side Source(const CUDA_MEMCPY3D& copy) {
  const std::uint64_t host = reinterpret_cast<std::uintptr_t>(copy.srcHost);
  return {copy.srcMemoryType, copy.srcMemoryType == CU_MEMORYTYPE_HOST ? host : copy.srcDevice,
          copy.srcArray,      copy.srcXInBytes,
          copy.srcY,          copy.srcZ,
          copy.srcPitch,      copy.srcHeight};
}
Side Target(const CUDA_MEMCPY3D& copy) {
  const std::uint64_t host = reinterpret_cast<std::uintptr_t>(copy.dstHost);
  return {copy.dstMemoryType, copy.dstMemoryType == CU_MEMORYTYPE_HOST ? host : copy.dstDevice,
          copy.dstArray,      copy.dstXInBytes,
          copy.dstY,          copy.dstZ,
          copy.dstPitch,      copy.dstHeight};
}

// Pitch and rows of a single row or slice may be left zero.
Side Normal(Side side, const CUDA_MEMCPY3D& copy) {
  if (side.pitch == 0) side.pitch = side.x + copy.WidthInBytes;
  if (side.rows == 0) side.rows = side.y + copy.Height;
  return side;
}

std::uint64_t LinearAddress(const Side& side, std::uint64_t y, std::uint64_t z) {
  return side.base + side.x + side.pitch * (side.y + y + side.rows * (side.z + z));
}

bool InReservation(const World& world, std::uint64_t address) {
  for (const Reservation* at = world.reservations; at != nullptr; at = at->next) {
    if (address - at->base < at->size) return true;
  }
  return false;
}

// Where the bytes at `address` really are, and how many follow without a seam. Unknown addresses are the client's own memory.
char* Resolve(const World& world, std::uint64_t address, CUmemorytype type, std::uint64_t* run) {
  const Range* const range = world.ranges.Find(address);
  if (range != nullptr) {
    if (!range->accessible) return nullptr;
    const std::uint64_t left = range->size - (address - range->base);
    if (left < *run) *run = left;
    return range->bytes + (address - range->base);
  }
  if (type == CU_MEMORYTYPE_DEVICE || world.device_memory.Contains(address) || world.host_memory.Contains(address) ||
      InReservation(world, address)) {
    return nullptr;
  }
  // Up to the next known interval the memory is the client's.
  const Range* const above = world.ranges.FirstFrom(address);
  if (above != nullptr && above->base - address < *run) *run = above->base - address;
  return reinterpret_cast<char*>(static_cast<std::uintptr_t>(address));
}

CUresult CheckSide(World& world, const Side& raw, const CUDA_MEMCPY3D& copy, bool planned) {
  if (raw.type == CU_MEMORYTYPE_ARRAY) {
    const Array* const array = world.Find<Array>(raw.array);
    if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!array->range->accessible) return CUDA_ERROR_INVALID_VALUE;  // nothing is mapped behind it yet
    const bool inside =
        raw.x + copy.WidthInBytes <= array->pitch && raw.y + copy.Height <= array->rows && raw.z + copy.Depth <= array->slices;
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (raw.type != CU_MEMORYTYPE_HOST && raw.type != CU_MEMORYTYPE_DEVICE && raw.type != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  if (raw.base == 0) return CUDA_ERROR_INVALID_VALUE;
  if (raw.pitch != 0 && raw.pitch < raw.x + copy.WidthInBytes && (copy.Height > 1 || copy.Depth > 1)) return CUDA_ERROR_INVALID_VALUE;
  const Side side = Normal(raw, copy);
  const std::uint64_t first = LinearAddress(side, 0, 0);
  const std::uint64_t last = LinearAddress(side, copy.Height - 1, copy.Depth - 1) + copy.WidthInBytes;
  if (planned && last >= first && IsGraphMemory(world, first, last - first)) return CUDA_SUCCESS;
  const bool known = world.ranges.Find(side.base) != nullptr;
  if (!known && (side.type == CU_MEMORYTYPE_DEVICE || world.device_memory.Contains(side.base))) return CUDA_ERROR_INVALID_VALUE;
  if (!known) return CUDA_SUCCESS;
  return last >= first && IsUsable(world, first, last - first) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult MoveRow(World& world, const Side& target, std::uint64_t to, const Side& source, std::uint64_t from, std::uint64_t bytes) {
  while (bytes != 0) {
    std::uint64_t run = bytes;
    char* const out = Resolve(world, to, target.type, &run);
    const char* const in = Resolve(world, from, source.type, &run);
    if (out == nullptr || in == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const bool source_gone = HasGone(world, from, run);
    if (!HasGone(world, to, run) && !source_gone) std::memmove(out, in, run);
    to += run;
    from += run;
    bytes -= run;
  }
  return CUDA_SUCCESS;
}

// Arrays become linear sides over their own bytes.
bool Flatten(World& world, Side* side, const CUDA_MEMCPY3D& copy) {
  if (side->type != CU_MEMORYTYPE_ARRAY) {
    *side = Normal(*side, copy);
    return true;
  }
  const Array* const array = world.Find<Array>(side->array);
  if (array == nullptr) return false;
  side->type = CU_MEMORYTYPE_DEVICE;
  side->base = array->range->base + array->offset;
  side->pitch = array->pitch;
  side->rows = array->rows;
  return true;
}

}  // namespace

bool IsUsable(const World& world, std::uint64_t address, std::uint64_t bytes) noexcept {
  if (address + bytes < address) return false;
  while (bytes != 0) {
    const Range* const range = world.ranges.Find(address);
    if (range == nullptr || !range->accessible || range->freeing) return false;
    const std::uint64_t left = range->size - (address - range->base);
    if (left >= bytes) return true;
    address += left;
    bytes -= left;
  }
  return true;
}

CUDA_MEMCPY3D LinearCopy(CUmemorytype to, std::uint64_t target, CUmemorytype from, std::uint64_t source, std::size_t bytes) noexcept {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from;
  copy.dstMemoryType = to;
  copy.srcHost = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(source));
  copy.srcDevice = source;
  copy.dstHost = reinterpret_cast<void*>(static_cast<std::uintptr_t>(target));
  copy.dstDevice = target;
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

CUresult CheckCopy(World& world, const CUDA_MEMCPY3D& copy, bool planned) noexcept {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  if (copy.srcLOD != 0 || copy.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckSide(world, Target(copy), copy, planned);
  return result != CUDA_SUCCESS ? result : CheckSide(world, Source(copy), copy, planned);
}

CUresult CheckFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill, bool planned) noexcept {
  if (fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (fill.width == 0 || fill.height == 0) return CUDA_SUCCESS;
  if (fill.dst == 0 || fill.dst % fill.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t row = fill.width * fill.elementSize;
  if (row / fill.elementSize != fill.width) return CUDA_ERROR_INVALID_VALUE;
  if (fill.height > 1 && (fill.pitch < row || fill.pitch % fill.elementSize != 0)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t bytes = fill.pitch * (fill.height - 1) + row;
  const bool good = IsUsable(world, fill.dst, bytes) || (planned && IsGraphMemory(world, fill.dst, bytes));
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool TouchesPageable(const World& world, const CUDA_MEMCPY3D& copy) noexcept {
  const Side sides[] = {Source(copy), Target(copy)};
  for (const Side& side : sides) {
    if (side.type == CU_MEMORYTYPE_ARRAY || side.type == CU_MEMORYTYPE_DEVICE) continue;
    if (world.ranges.Find(side.base) == nullptr) return true;
  }
  return false;
}

CUresult RunCopy(World& world, const CUDA_MEMCPY3D& copy) noexcept {
  Side source = Source(copy);
  Side target = Target(copy);
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  if (!Flatten(world, &source, copy) || !Flatten(world, &target, copy)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  world.now += copy.WidthInBytes * copy.Height * copy.Depth / 1024;
  for (std::uint64_t z = 0; z < copy.Depth; ++z) {
    for (std::uint64_t y = 0; y < copy.Height; ++y) {
      const CUresult result = MoveRow(world, target, LinearAddress(target, y, z), source, LinearAddress(source, y, z), copy.WidthInBytes);
      if (result != CUDA_SUCCESS) return result;
    }
  }
  return CUDA_SUCCESS;
}

CUresult RunFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill) noexcept {
  const std::uint64_t row = fill.width * fill.elementSize;
  world.now += row * fill.height / 1024;
  for (std::uint64_t y = 0; y < fill.height; ++y) {
    std::uint64_t address = fill.dst + y * fill.pitch;
    for (std::uint64_t left = row; left != 0;) {
      std::uint64_t run = left;
      char* const out = Resolve(world, address, CU_MEMORYTYPE_DEVICE, &run);
      if (out == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
      const bool gone = HasGone(world, address, run);
      if (!gone && fill.elementSize == 1) {
        std::memset(out, static_cast<int>(fill.value & 0xffU), run);
      } else if (!gone) {
        for (std::uint64_t i = 0; i + fill.elementSize <= run; i += fill.elementSize) std::memcpy(out + i, &fill.value, fill.elementSize);
      }
      address += run;
      left -= run;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace cuaudit::sim
