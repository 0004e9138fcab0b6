// SPDX-License-Identifier: MIT
// counts.h: the cycle counts of a comparison and the {n} in a command that stands for them.
//
//   Threads   pure.
//   Units     cycles.
//   Errors    ParseCounts answers a Status that names the text and what was expected.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/status.h"

namespace cuaudit::harness {

// "1,10": at least two counts, from 1, increasing.
Result<std::vector<std::uint64_t>> ParseCounts(std::string_view text);

bool TakesCount(std::span<const std::string> command);

// Every {n} in every word becomes the number.
std::vector<std::string> WithCount(std::span<const std::string> command, std::uint64_t count);

}  // namespace cuaudit::harness
