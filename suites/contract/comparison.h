// SPDX-License-Identifier: MIT
// comparison.h: which answers are not what they should be: the rules of differences.def.
//
//   Owns      nothing.
//   Threads   no state.
//   Errors    one line per broken expectation; none: as expected.
//   Faults    makes no driver calls.
//   Source    ours.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cuaudit::contract {

struct Difference {
  const char* question;
  const char* answer;  // the simulated driver's
  const char* reason;
};
std::span<const Difference> AcceptedDifferences();

using Answers = std::map<std::string, std::string>;

// `answers` must equal `reference` except for the accepted differences, which must be answered as they say and must still differ.
// Questions that the reference lacks are not compared; an accepted difference of a question that nobody asked is broken when
// `all_asked`.
std::vector<std::string> Compare(const Answers& answers, const Answers& reference, std::span<const Difference> accepted, bool all_asked);

// Lines of name<TAB>answer; lines that start with # are comments. Nothing when the file is none such.
std::optional<Answers> ReadAnswers(const std::string& path);

}  // namespace cuaudit::contract
