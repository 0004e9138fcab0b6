// SPDX-License-Identifier: MIT
// box.h: a strided set of bytes: rows with one pitch inside slices with one pitch, as pitched copies and memsets touch them.
//
//   Units     bytes.
//   Source    Overlap solves a linear congruence in an interval by Euclid's algorithm.
#pragma once

#include <cstdint>

namespace cuaudit::sim {

// `slices` times `rows` rows of `bytes` each, in ascending order. The gaps between rows and between slices are not touched.
struct Box {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 1;
  std::uint64_t pitch = 0;  // from the start of one row to the start of the next
  std::uint64_t slices = 1;
  std::uint64_t slice_pitch = 0;
};

constexpr std::uint64_t EndOf(const Box& box) noexcept {
  return box.address + (box.slices - 1) * box.slice_pitch + (box.rows - 1) * box.pitch + box.bytes;
}
// True if some byte is in both. The time grows with the number of slices, not of rows.
bool Overlap(const Box& one, const Box& two) noexcept;
// True only if all of `inner` is in `outer`. May be false for a box that is.
bool Covers(const Box& outer, const Box& inner) noexcept;

}  // namespace cuaudit::sim
