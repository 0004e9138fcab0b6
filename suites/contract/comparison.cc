// SPDX-License-Identifier: MIT
#include "suites/contract/comparison.h"

#include <fstream>
#include <iterator>

namespace cuaudit::contract {
namespace {

constexpr Difference kAccepted[] = {
#define CUAUDIT_DIFFERENCE(question, evidence, answer, reason) {question, answer, reason, Evidence::evidence},
#include "suites/contract/differences.def"
#undef CUAUDIT_DIFFERENCE
};

const Difference* Find(std::span<const Difference> accepted, const std::string& question) {
  for (const Difference& row : accepted) {
    if (question == row.question) return &row;
  }
  return nullptr;
}

}  // namespace

std::vector<Difference> AcceptedDifferences(bool crashes) {
  std::vector<Difference> accepted(std::begin(kAccepted), std::end(kAccepted));
  if (crashes) std::erase_if(accepted, [](const Difference& row) { return row.evidence == Evidence::Crashes; });
  return accepted;
}

std::vector<std::string> Compare(const Answers& answers, const Answers& reference, std::span<const Difference> accepted, bool all_asked) {
  std::vector<std::string> broken;
  for (const auto& [question, answer] : answers) {
    const auto known = reference.find(question);
    if (known == reference.end()) continue;
    const Difference* const row = Find(accepted, question);
    const std::string expected = row != nullptr ? row->answer : known->second;
    const bool crashes = known->second.ends_with("crash");
    if (row != nullptr && (row->evidence == Evidence::Crashes || row->evidence == Evidence::Steady) &&
        crashes != (row->evidence == Evidence::Crashes)) {
      broken.push_back(question + ": the evidence is not what was recorded, " + known->second);
    } else if (row != nullptr && known->second == expected) {
      broken.push_back(question + ": listed as a difference, but both answers are " + expected);
    } else if (answer != expected) {
      broken.push_back(question + ": expected " + expected + ", answered " + answer);
    }
  }
  if (!all_asked) return broken;
  for (const auto& [question, answer] : reference) {
    if (!answers.contains(question)) broken.push_back(question + ": expected " + answer + ", but there is no such question");
  }
  for (const Difference& row : accepted) {
    if (!answers.contains(row.question))
      broken.push_back(std::string(row.question) + ": listed as a difference, but there is no such question");
  }
  return broken;
}

std::optional<Answers> ReadAnswers(const std::string& path) {
  std::ifstream file(path);
  Answers answers;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos || !answers.emplace(line.substr(0, tab), line.substr(tab + 1)).second) return std::nullopt;
  }
  if (answers.empty()) return std::nullopt;
  return answers;
}

}  // namespace cuaudit::contract
