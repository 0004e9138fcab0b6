// SPDX-License-Identifier: MIT
// counts.h: parses the cycle counts of a comparison and puts them in the place of {n} in a command.
//
//   Units     cycles.
//   Errors    ParseCounts answers a Status that names the text and what was expected.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"

namespace cuaudit::harness {

struct CycleCounts {
  std::vector<std::uint64_t> given;  // increasing, at least two
  std::uint64_t most = 0;            // cycles of a run at most, when the counts go on
};

// Reads "1,10": at least two increasing counts from 1.
Result<std::vector<std::uint64_t>> ParseCounts(std::string_view text);

bool TakesCount(std::span<const std::string> command);

// Replaces every {n} in every word by the number.
std::vector<std::string> WithCount(std::span<const std::string> command, std::uint64_t count);

}  // namespace cuaudit::harness
