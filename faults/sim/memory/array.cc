// SPDX-License-Identifier: MIT
#define __CUDA_API_VERSION_INTERNAL
#include "faults/sim/memory/array.h"

#include "faults/sim/memory/memory.h"
#include "faults/sim/memory/pool.h"

namespace cuaudit::sim {
namespace {

constexpr std::size_t kMaxWidth = 131072;
constexpr std::size_t kMaxHeight = 65536;
constexpr std::size_t kMaxDepth = 16384;
constexpr unsigned kFlags = 0x1ff;  // CUDA_ARRAY3D_LAYERED to CUDA_ARRAY3D_VIDEO_ENCODE_DECODE

struct Element {
  std::uint32_t bytes = 0;  // 0: no such format with so many channels; planar ones are not modelled
  std::uint32_t side = 1;   // of a block
};

Element ElementOf(CUarray_format format, unsigned channels) {
  const bool plain = channels == 1 || channels == 2 || channels == 4;
  // Numbers: younger headers have more of the names. Block-compressed formats come in pairs.
  struct Row {
    int first, last;
    unsigned channels;
    std::uint32_t bytes, side;
  };
  constexpr Row kRows[] = {
      {0x91, 0x92, 4, 8, 4},  {0x93, 0x96, 4, 16, 4}, {0x97, 0x98, 1, 8, 4}, {0x99, 0x9a, 2, 16, 4}, {0x9b, 0x9c, 3, 16, 4},
      {0x9d, 0x9e, 4, 16, 4}, {0xc0, 0xc0, 1, 1, 1},  {0xc1, 0xc1, 2, 2, 1}, {0xc2, 0xc2, 4, 4, 1},  {0xc3, 0xc3, 1, 2, 1},
      {0xc4, 0xc4, 2, 4, 1},  {0xc5, 0xc5, 4, 8, 1},  {0xc6, 0xc6, 1, 1, 1}, {0xc7, 0xc7, 2, 2, 1},  {0xc8, 0xc8, 4, 4, 1},
      {0xc9, 0xc9, 1, 2, 1},  {0xca, 0xca, 2, 4, 1},  {0xcb, 0xcb, 4, 8, 1}, {0x50, 0x50, 4, 4, 1},
  };
  for (const Row& row : kRows) {
    if (static_cast<int>(format) >= row.first && static_cast<int>(format) <= row.last) {
      return channels == row.channels ? Element{row.bytes, row.side} : Element{};
    }
  }
  if (!plain) return {};
  switch (static_cast<int>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return {channels, 1};
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return {channels * 2, 1};
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return {channels * 4, 1};
    default:
      return {};
  }
}

std::uint64_t Padded(const Array& shape) { return (shape.Size() + 511) / 512 * 512; }

}  // namespace

bool ShapeArray(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array* array) noexcept {
  const Element element = ElementOf(descriptor.Format, descriptor.NumChannels);
  const bool fits = descriptor.Width <= kMaxWidth && descriptor.Height <= kMaxHeight && descriptor.Depth <= kMaxDepth;
  if (element.bytes == 0 || descriptor.Width == 0 || !fits || (descriptor.Flags & ~kFlags) != 0) return false;
  const bool layered = (descriptor.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (descriptor.Height == 0 && descriptor.Depth != 0 && !layered) return false;
  if ((descriptor.Flags & CUDA_ARRAY3D_CUBEMAP) != 0 && (descriptor.Depth % 6 != 0 || descriptor.Width != descriptor.Height)) return false;
  if ((descriptor.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) != 0 && descriptor.Depth != 0 && !layered) return false;
  const std::uint64_t height = descriptor.Height == 0 ? 1 : descriptor.Height;
  array->descriptor = descriptor;
  array->element = element.bytes;
  array->pitch = (descriptor.Width + element.side - 1) / element.side * element.bytes;
  array->rows = (height + element.side - 1) / element.side;
  array->slices = descriptor.Depth == 0 ? 1 : descriptor.Depth;
  return true;
}

bool ShapeLevels(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned wanted, Levels* levels) noexcept {
  Array shape;
  if (!ShapeArray(descriptor, &shape)) return false;
  for (CUDA_ARRAY3D_DESCRIPTOR size = descriptor; levels->count < MipmappedArray::kMaxLevels;) {
    if (levels->count != 0 && levels->count >= wanted) break;
    (void)ShapeArray(size, &shape);
    levels->size[levels->count++] = size;
    levels->bytes += Padded(shape);
    const bool flat = (size.Flags & CUDA_ARRAY3D_LAYERED) != 0 || size.Depth <= 1;
    if (size.Width <= 1 && size.Height <= 1 && flat) break;
    size.Width = size.Width > 1 ? size.Width / 2 : size.Width;
    size.Height = size.Height > 1 ? size.Height / 2 : size.Height;
    if ((size.Flags & CUDA_ARRAY3D_LAYERED) == 0) size.Depth = size.Depth > 1 ? size.Depth / 2 : size.Depth;
  }
  return true;
}

Range* TakeForArray(World& world, Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, std::uint64_t bytes) noexcept {
  if (!IsDeferred(descriptor)) return TakeDevice(world, context, bytes, Kind::None);
  Range* const range = TakeElsewhere(world, context, bytes, Kind::None, nullptr);
  if (range == nullptr) return nullptr;
  range->bytes = world.device_memory.Bytes(range->base);
  range->accessible = false;
  return range;
}

MipmappedArray* FindLevels(Call& call, CUmipmappedArray handle) noexcept {
  const bool loaded = call.world.live[static_cast<std::size_t>(Kind::Module)] != 0;
  return loaded ? call.Read<MipmappedArray>(handle) : call.Follow<MipmappedArray>(handle);
}

CUresult RefuseLevels(const Call& call, CUmipmappedArray handle) noexcept {
  return call.world.IsStale(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
}

MipmappedArray* MakeLevels(World& world, Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, const Levels& levels,
                           Range* range) noexcept {
  MipmappedArray* const array = world.Make<MipmappedArray>(context);
  if (array == nullptr) {
    GiveBack(world, range);
    return nullptr;
  }
  array->descriptor = descriptor;
  array->levels = levels.count;
  array->range = range;
  std::uint64_t offset = 0;
  for (unsigned i = 0; i < levels.count; ++i) {
    Array* const level = world.Make<Array>(context, false);
    if (level == nullptr) {
      FreeMipmappedArray(world, array);
      return nullptr;
    }
    (void)ShapeArray(levels.size[i], level);
    level->parent = array;
    level->range = range;
    level->offset = offset;
    offset += Padded(*level);
    array->level[i] = level;
  }
  return array;
}

}  // namespace cuaudit::sim
