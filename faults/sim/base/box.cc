// SPDX-License-Identifier: MIT
#include "faults/sim/base/box.h"

namespace cuaudit::sim {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kNone = ~std::uint64_t{0};

std::uint64_t RoundedUp(Wide value, std::uint64_t by) { return static_cast<std::uint64_t>((value + by - 1) / by); }

// The smallest x >= 0 with low <= step * x mod modulus <= high. Requires step and high below modulus.
std::uint64_t FirstInside(std::uint64_t step, std::uint64_t modulus, std::uint64_t low, std::uint64_t high) {
  if (low == 0) return 0;
  if (step == 0) return kNone;
  const std::uint64_t direct = RoundedUp(low, step);
  if (Wide{direct} * step <= high) return direct;
  // No multiple of step lies inside, so the sum wraps y times; y * modulus then falls short of a multiple by that much.
  const std::uint64_t y = FirstInside(modulus % step, step, (step - high % step) % step, (step - low % step) % step);
  return y == kNone ? kNone : RoundedUp(Wide{y} * modulus + low, step);
}

// Overlap of two boxes of one slice each.
bool RowsOverlap(const Box& one, const Box& two) {
  const std::uint64_t end = EndOf(two);
  if (EndOf(one) <= two.address || end <= one.address) return false;
  if (two.rows == 1) return one.rows == 1 || RowsOverlap(two, one);
  // Rows of `one` that begin before the end of `two` and end after its beginning.
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (one.rows > 1) {
    if (one.address + one.bytes <= two.address) first = (two.address - one.address - one.bytes) / one.pitch + 1;
    last = (end - 1 - one.address) / one.pitch;
    if (last >= one.rows) last = one.rows - 1;
    if (first > last) return false;
  }
  const std::uint64_t width = one.bytes + two.bytes - 1;  // number of offsets within a pitch at which a row of `one` meets a row of `two`
  if (width >= two.pitch) return true;
  const std::uint64_t at = (one.address + first * one.pitch + one.bytes - 1 - two.address) % two.pitch;
  if (at < width) return true;
  const std::uint64_t low = two.pitch - at;
  const std::uint64_t more = FirstInside(one.pitch % two.pitch, two.pitch, low, low + width - 1);
  return more != kNone && more <= last - first;
}

Box SliceOf(const Box& box, std::uint64_t slice) { return {box.address + slice * box.slice_pitch, box.bytes, box.rows, box.pitch}; }

}  // namespace

bool Overlap(const Box& one, const Box& two) noexcept {
  if (EndOf(one) <= two.address || EndOf(two) <= one.address) return false;
  if (one.slices > two.slices) return Overlap(two, one);
  if (two.slices == 1) return RowsOverlap(one, two);
  const std::uint64_t depth = (two.rows - 1) * two.pitch + two.bytes;
  for (std::uint64_t i = 0; i < one.slices; ++i) {
    const Box slice = SliceOf(one, i);
    const std::uint64_t end = EndOf(slice);
    if (end <= two.address) continue;
    std::uint64_t k = 0;
    if (slice.address >= two.address + depth) k = (slice.address - two.address - depth) / two.slice_pitch + 1;
    for (; k < two.slices && two.address + k * two.slice_pitch < end; ++k) {
      if (RowsOverlap(slice, SliceOf(two, k))) return true;
    }
  }
  return false;
}

bool Covers(const Box& outer, const Box& inner) noexcept {
  if (inner.address < outer.address || EndOf(inner) > EndOf(outer)) return false;
  if (outer.rows == 1 && outer.slices == 1) return true;
  if (outer.slices != 1 || inner.slices != 1) {
    return outer.address == inner.address && outer.bytes == inner.bytes && outer.rows == inner.rows && outer.pitch == inner.pitch &&
           outer.slices == inner.slices && outer.slice_pitch == inner.slice_pitch;
  }
  if (inner.rows > 1 && inner.pitch != outer.pitch) return false;
  const std::uint64_t offset = inner.address - outer.address;
  return offset % outer.pitch + inner.bytes <= outer.bytes && offset / outer.pitch + inner.rows <= outer.rows;
}

}  // namespace cuaudit::sim
