// SPDX-License-Identifier: MIT
// cycle_file.h: the file that says under which faults each cycle of a program runs. Each cycle is one trial.
//
//     CycleHeader | CycleRow[rows], in the order of the cycles
//
// The program only reads the file. The thread that marks a cycle looks up its row; a cycle without a row runs without faults.
// Occurrences count from the begin of the cycle. A reader checks magic, digest, size and each fault before it trusts anything.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/plan/fault.h"

namespace cuaudit::faults {

inline constexpr char kCycleMagic[8] = {'c', 'u', 'a', 'u', 'd', 'i', 't', 'C'};
inline constexpr std::size_t kCycleFaults = 4;

struct CycleHeader {
  char magic[8];
  std::uint64_t table_digest;
  std::uint64_t file_bytes;
  std::uint64_t rows;
};

struct CycleRow {
  std::uint32_t cycle = 0;  // counted from 1
  std::uint32_t faults = 0;
  Fault fault[kCycleFaults];
};

}  // namespace cuaudit::faults
