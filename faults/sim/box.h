// SPDX-License-Identifier: MIT
// box.h: bytes at even distances: rows of one pitch within slices of one pitch, as pitched copies and fills touch them.
//
//   Owns      nothing; a value.
//   Threads   values.
//   Units     bytes.
//   Errors    none.
//   Faults    makes no driver calls.
//   Source    ours; the first multiple inside an interval of residues, after Euclid's algorithm.
#pragma once

#include <cstdint>

namespace cuaudit::sim {

// `slices` times `rows` rows of `bytes` each; the gaps between rows, and between slices, are not touched. Rows and slices are in order.
struct Box {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 1;
  std::uint64_t pitch = 0;  // between the beginnings of two rows
  std::uint64_t slices = 1;
  std::uint64_t slice_pitch = 0;
};

constexpr std::uint64_t EndOf(const Box& box) noexcept {
  return box.address + (box.slices - 1) * box.slice_pitch + (box.rows - 1) * box.pitch + box.bytes;
}
// Whether a byte is in both. The time does not depend on how many rows they have, only on the slices.
bool Overlap(const Box& one, const Box& two) noexcept;
// Whether all of the inner one is surely in the outer one.
bool Covers(const Box& outer, const Box& inner) noexcept;

}  // namespace cuaudit::sim
