// SPDX-License-Identifier: MIT
// function_starts.h: where functions begin in an object file without symbols, from its unwind table (.eh_frame_hdr).
//
//   Units     addresses in the numbering of the file.
//   Source    Linux Standard Base Core, 10.6 (.eh_frame_hdr): a sorted table of 4-byte pairs relative to its own section.
#pragma once

#include <cstdint>
#include <vector>

struct Elf;

namespace cuaudit::harness {

class FunctionStarts {
 public:
  FunctionStarts() = default;
  // `elf` is only borrowed for the call. Without a table of the usual encoding no start is known.
  explicit FunctionStarts(Elf* elf);

  // The start of the function that `address` lies in, as far as the table goes; 0 when unknown.
  std::uint64_t Before(std::uint64_t address) const;

 private:
  std::vector<std::uint64_t> starts_;  // sorted
};

}  // namespace cuaudit::harness
