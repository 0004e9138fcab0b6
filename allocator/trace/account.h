// SPDX-License-Identifier: MIT
// account.h: the text that goes with an allocation that failed: what was asked for, where the memory is, what was tried.
//
//   Owns      nothing; the names of steps are static.
//   Threads   values.
//   Units     bytes; texts name them as 512 B, 20.00 MiB, 1.50 GiB.
//   Errors    throws bad_alloc; the allocator calls FormatAccountTo, which needs no memory.
//   Faults    makes no driver calls: whoever fills it in asks the driver.
//   Source    what PyTorch's message says, and what its users ask for beside it: pending uses, the largest free block, the ladder.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cuaudit::alloc {

// One rung of the ladder, in the order in which they were tried.
struct LadderStep {
  const char* name = "";
  std::uint64_t tries = 0;
  std::uint64_t gained_bytes = 0;  // given back to the device, or made free in a pool
};

struct OomAccount {
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;  // the driver's last answer
  int device = 0;
  std::uint64_t stream = 0;
  bool is_large = false;
  std::uint64_t pool_id[2] = {};
  std::size_t requested_bytes = 0;
  std::size_t rounded_bytes = 0;
  std::size_t segment_bytes = 0;  // asked of the device
  bool knows_device = false;      // whether the driver answered how much memory there is
  std::size_t device_free_bytes = 0;
  std::size_t device_total_bytes = 0;
  std::size_t limit_bytes = 0;  // of a memory fraction; 0: none
  std::size_t reserved_bytes = 0;
  std::size_t allocated_bytes = 0;  // in use by the program
  std::size_t pending_bytes = 0;    // freed, with uses that are not done
  std::uint64_t pending_uses = 0;
  std::size_t cached_bytes = 0;  // free, in segments of the allocator
  std::size_t largest_free_bytes = 0;
  std::span<const LadderStep> ladder;
};

// "512 B", "20.00 MiB".
std::string FormatBytes(std::size_t bytes);
std::string FormatAccount(const OomAccount& account);
// The same into a buffer, cut when it is too small; always ends with a NUL when capacity > 0. Answers the length without the NUL.
std::size_t FormatAccountTo(const OomAccount& account, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::alloc
