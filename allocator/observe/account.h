// SPDX-License-Identifier: MIT
// account.h: what an allocator counts, by name, and the text that goes with an allocation that failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "allocator/statistics.h"
#include "allocator/trace.h"

namespace cuaudit::alloc {

// An allocator's counters by name.
//
//   Owns      its texts.
//   Threads   values.
//   Units     as statistics.h.
//   Errors    throws bad_alloc.
//   Faults    makes no driver calls.
//   Source    names of torch.cuda.memory_stats: "allocated_bytes.large_pool.peak", "num_ooms"; from served_* on they are ours.
std::vector<std::pair<std::string, std::int64_t>> ListStatistics(const Statistics& statistics);

// The text that goes with an allocation that failed: what was asked for, where the memory is, what was tried.
//
//   Threads   values.
//   Units     bytes; texts name them as 512 B, 20.00 MiB, 1.50 GiB.
//   Errors    throw bad_alloc; the form with a buffer needs no memory and cuts the text when it is too small.
//   Faults    makes no driver calls: the allocator asked the driver.
//   Source    what PyTorch's message says, and what its users ask for beside it: pending uses, the largest free block, the ladder's counts.

// "512 B", "20.00 MiB".
std::string FormatBytes(std::size_t bytes);

// Of a backend without a cache: `call` is the driver's that was refused; of the account the device, what was requested, the driver's answer
// and what the device has free.
std::string FormatDriverOutOfMemory(const OutOfMemory& account, const Statistics& statistics, const char* call);

// `statistics` of the same device.
std::string FormatOutOfMemory(const OutOfMemory& account, const Statistics& statistics);
// Ends with a NUL when capacity > 0. Answers the length of what is there, without the NUL.
std::size_t FormatOutOfMemory(const OutOfMemory& account, const Statistics& statistics, char* text, std::size_t capacity) noexcept;

}  // namespace cuaudit::alloc
