// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL

#include "faults/sim/operation/access.h"

#include "faults/sim/kernel/launch.h"
#include "faults/sim/operation/value_work.h"

namespace cuaudit::sim {
namespace {

// One side of a copy.
struct Side {
  std::uint64_t base, x, y, z, pitch, rows;
};

// Slices at the distance of the row pitch form one set of rows; rows without gaps form one row.
bool AddSide(World& world, const Side& side, const CUDA_MEMCPY3D& copy, AccessMode mode, AccessList* list) {
  const bool even = side.rows == copy.Height || copy.Depth == 1;
  Box box;
  box.address = side.base + side.x + side.pitch * (side.y + side.rows * side.z);
  box.bytes = copy.WidthInBytes;
  box.rows = even ? copy.Height * copy.Depth : copy.Height;
  box.pitch = side.pitch;
  box.slices = even ? 1 : copy.Depth;
  box.slice_pitch = side.pitch * side.rows;
  if (box.pitch == box.bytes) box = {box.address, box.bytes * box.rows, box.slices, box.slice_pitch};
  return list->Push(world.arena, Access(box, mode));
}

bool AddArray(World& world, CUarray handle, const Side& offset, const CUDA_MEMCPY3D& copy, AccessMode mode, AccessList* list) {
  const Array* const array = world.Find<Array>(handle);
  if (array == nullptr) return true;  // the copy itself will fail
  Side side = offset;
  side.base = array->range->base + array->offset;
  side.pitch = array->pitch;
  side.rows = array->rows;
  return AddSide(world, side, copy, mode, list);
}

bool AddCopy(World& world, const CUDA_MEMCPY3D& copy, AccessList* list) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return true;
  const std::uint64_t from =
      copy.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(copy.srcHost) : std::uint64_t{copy.srcDevice};
  const std::uint64_t to =
      copy.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(copy.dstHost) : std::uint64_t{copy.dstDevice};
  Side source{from, copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight};
  Side target{to, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight};
  for (Side* const side : {&source, &target}) {
    if (side->pitch == 0) side->pitch = side->x + copy.WidthInBytes;
    if (side->rows == 0) side->rows = side->y + copy.Height;
  }
  const bool read = copy.srcMemoryType == CU_MEMORYTYPE_ARRAY ? AddArray(world, copy.srcArray, source, copy, AccessMode::Read, list)
                                                              : AddSide(world, source, copy, AccessMode::Read, list);
  if (!read) return false;
  return copy.dstMemoryType == CU_MEMORYTYPE_ARRAY ? AddArray(world, copy.dstArray, target, copy, AccessMode::Write, list)
                                                   : AddSide(world, target, copy, AccessMode::Write, list);
}

bool AddFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill, AccessList* list) {
  if (fill.width == 0 || fill.height == 0) return true;
  Box box{fill.dst, fill.width * fill.elementSize, fill.height, fill.pitch};
  if (box.pitch == box.bytes) box = {box.address, box.bytes * box.rows};
  return list->Push(world.arena, Access(box, AccessMode::Write));
}

bool AddBatch(World& world, const CUDA_BATCH_MEM_OP_NODE_PARAMS& batch, AccessList* list) {
  for (unsigned i = 0; i < batch.count; ++i) {
    Work each;
    (void)ReadValueOperation(world, batch.paramArray[i], &each);  // if it is invalid, the batch itself fails
    if (!ListAccesses(world, each, list)) return false;
  }
  return true;
}

}  // namespace

bool ListAccesses(World& world, const Work& work, AccessList* list) noexcept {
  switch (work.type) {
    case WorkType::Copy:
      return AddCopy(world, work.copy, list);
    case WorkType::Fill:
      return AddFill(world, work.fill, list);
    case WorkType::Kernel:
      return ListKernelAccesses(world, work.kernel, list) && ListDeclaredAccesses(world, work, list);
    case WorkType::Write:
      return list->Push(world.arena, Access{work.value.address, work.value.wide ? std::uint64_t{8} : std::uint64_t{4}, AccessMode::Use});
    case WorkType::Await:  // not a Read: a wait is meant to meet an unordered write
      return list->Push(world.arena, Access{work.value.address, work.value.wide ? std::uint64_t{8} : std::uint64_t{4}, AccessMode::Use});
    case WorkType::Nothing:
    case WorkType::HostFunction:
    case WorkType::Callback:
    case WorkType::Record:
    case WorkType::Wait:
    case WorkType::Alloc:
    case WorkType::Free:
    case WorkType::Launch:
    case WorkType::Child:
    case WorkType::Conditional:
      return true;
    case WorkType::Batch:
      return AddBatch(world, work.batch, list);
  }
  return true;
}

namespace {

// An integer parameter of up to eight bytes.
std::uint64_t Integer(const void* value, std::uint32_t bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, value, bytes < sizeof(number) ? bytes : sizeof(number));
  return number;
}

}  // namespace

bool ListKernelAccesses(World& world, const CUDA_KERNEL_NODE_PARAMS& kernel, AccessList* list) noexcept {
  const Symbol* const symbol = KernelSymbol(world, kernel);
  if (symbol == nullptr || !symbol->parameters_known || kernel.kernelParams == nullptr) return true;
  for (std::size_t i = 0; i < symbol->parameters.size(); ++i) {
    if (symbol->parameters[i].size != sizeof(CUdeviceptr) || kernel.kernelParams[i] == nullptr) continue;
    CUdeviceptr value = 0;
    std::memcpy(&value, kernel.kernelParams[i], sizeof(value));
    const Range* const range = world.ranges.Find(value);
    if (range != nullptr && !list->Push(world.arena, Access{range->base, range->size, AccessMode::Use})) return false;
  }
  return true;
}

bool ListDeclaredAccesses(World& world, const Work& work, AccessList* list) noexcept {
  const Arguments* const arguments = work.arguments;
  if (arguments == nullptr || arguments->host == nullptr || arguments->host->parameters == nullptr) return true;
  const cuaudit_kernel& kernel = *arguments->host;
  for (std::uint32_t i = 0; i < arguments->count && i < kernel.parameter_count; ++i) {
    const cuaudit_parameter& parameter = kernel.parameters[i];
    if (parameter.bytes != sizeof(std::uint64_t)) continue;
    const std::uint64_t address = Integer(arguments->pointers[i], parameter.bytes);
    const Range* const range = world.ranges.Find(address);
    if (range == nullptr) continue;
    if (arguments->by_host && !list->Push(world.arena, Access{range->base, range->size, AccessMode::Use})) return false;
    if (parameter.count_from == 0 || parameter.count_from > kernel.parameter_count) continue;
    const std::uint32_t counter = parameter.count_from - 1;
    const std::uint64_t count = Integer(arguments->pointers[counter], kernel.parameters[counter].bytes);
    const std::uint64_t left = range->size - (address - range->base);
    const std::uint64_t bytes = parameter.element != 0 && count > left / parameter.element ? left : count * parameter.element;
    if (bytes == 0) continue;
    if ((parameter.access & CUAUDIT_READS) != 0 && !list->Push(world.arena, Access{address, bytes, AccessMode::Read})) return false;
    if ((parameter.access & CUAUDIT_WRITES) != 0 && !list->Push(world.arena, Access{address, bytes, AccessMode::Write})) return false;
  }
  return true;
}

}  // namespace cuaudit::sim
