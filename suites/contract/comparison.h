// SPDX-License-Identifier: MIT
// comparison.h: finds answers that are not as expected, by the rules of differences.def.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cuaudit::contract {

enum class Evidence { None, Crashes, Varies, Steady };  // see differences.def; None: the row says nothing of it

struct Difference {
  const char* question;
  const char* answer;  // the simulated driver's
  const char* reason;
  Evidence evidence = Evidence::None;
};
// `crashes`: the simulated driver was told to crash where the genuine one does. Then it must, and no row Crashes is among them.
std::vector<Difference> AcceptedDifferences(bool crashes);

using Answers = std::map<std::string, std::string>;

// `answers` must equal `reference`, apart from the accepted differences, which must have the answer that they declare and must still
// differ and have the evidence that was recorded. Questions that the reference lacks are not compared. With `all_asked`, an accepted
// difference whose question was not asked is an error. Returns one line per error.
std::vector<std::string> Compare(const Answers& answers, const Answers& reference, std::span<const Difference> accepted, bool all_asked);

// Reads lines of name<TAB>answer; lines that start with # are comments. Returns nothing when the file has another form.
std::optional<Answers> ReadAnswers(const std::string& path);

}  // namespace cuaudit::contract
