// SPDX-License-Identifier: MIT
// statistics_list.h: an allocator's counters by name.
//
//   Owns      its texts.
//   Threads   values.
//   Units     as statistics.h.
//   Errors    throws bad_alloc.
//   Faults    makes no driver calls.
//   Source    names of torch.cuda.memory_stats: "allocated_bytes.large_pool.peak", "num_ooms"; from served_* on they are ours.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "allocator/statistics.h"

namespace cuaudit::alloc {

std::vector<std::pair<std::string, std::int64_t>> ListStatistics(const Statistics& statistics);

}  // namespace cuaudit::alloc
