// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/access.h"

#include "faults/sim/host_kernel.h"
#include "faults/sim/value_work.h"

namespace cuaudit::sim {
namespace {

struct Box {
  std::uint64_t base, x, y, z, pitch, rows;
};

// A box is rows within slices; where slices follow each other like rows, all of it is one rectangle.
bool AddBox(World& world, const Box& box, const CUDA_MEMCPY3D& copy, AccessMode mode, AccessList* list) {
  const bool even = box.rows == copy.Height || copy.Depth == 1;
  const std::uint64_t slices = even ? 1 : copy.Depth;
  for (std::uint64_t z = 0; z < slices; ++z) {
    const std::uint64_t first = box.base + box.x + box.pitch * (box.y + box.rows * (box.z + z));
    const std::uint64_t rows = even ? copy.Height * copy.Depth : copy.Height;
    Access access{first, copy.WidthInBytes, mode, rows, box.pitch};
    if (box.pitch == copy.WidthInBytes) access = {first, copy.WidthInBytes * rows, mode};
    if (!list->Push(world.arena, access)) return false;
  }
  return true;
}

bool AddArray(World& world, CUarray handle, const Box& offset, const CUDA_MEMCPY3D& copy, AccessMode mode, AccessList* list) {
  const Array* const array = world.Find<Array>(handle);
  if (array == nullptr) return true;  // the copy itself will fail
  Box box = offset;
  box.base = array->range->base + array->offset;
  box.pitch = array->pitch;
  box.rows = array->rows;
  return AddBox(world, box, copy, mode, list);
}

bool AddCopy(World& world, const CUDA_MEMCPY3D& copy, AccessList* list) {
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return true;
  const std::uint64_t from =
      copy.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(copy.srcHost) : std::uint64_t{copy.srcDevice};
  const std::uint64_t to =
      copy.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uintptr_t>(copy.dstHost) : std::uint64_t{copy.dstDevice};
  Box source{from, copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight};
  Box target{to, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight};
  for (Box* const box : {&source, &target}) {
    if (box->pitch == 0) box->pitch = box->x + copy.WidthInBytes;
    if (box->rows == 0) box->rows = box->y + copy.Height;
  }
  const bool read = copy.srcMemoryType == CU_MEMORYTYPE_ARRAY ? AddArray(world, copy.srcArray, source, copy, AccessMode::Read, list)
                                                              : AddBox(world, source, copy, AccessMode::Read, list);
  if (!read) return false;
  return copy.dstMemoryType == CU_MEMORYTYPE_ARRAY ? AddArray(world, copy.dstArray, target, copy, AccessMode::Write, list)
                                                   : AddBox(world, target, copy, AccessMode::Write, list);
}

bool AddFill(World& world, const CUDA_MEMSET_NODE_PARAMS& fill, AccessList* list) {
  if (fill.width == 0 || fill.height == 0) return true;
  return list->Push(world.arena, Access{fill.dst, fill.width * fill.elementSize, AccessMode::Write, fill.height, fill.pitch});
}

bool AddBatch(World& world, const CUDA_BATCH_MEM_OP_NODE_PARAMS& batch, AccessList* list) {
  for (unsigned i = 0; i < batch.count; ++i) {
    Work each;
    if (ReadValueOperation(world, batch.paramArray[i], &each) != CUDA_SUCCESS) continue;  // the batch itself will fail
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
    case WorkType::Await:  // no Read: a wait is made to meet a writer that nothing orders before it
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

}  // namespace cuaudit::sim
