// SPDX-License-Identifier: MIT
// rules.h: the rules of rules.def as an enumeration with names, levels and titles.
//
//   Owns      nothing; constant tables.
//   Threads   safe everywhere; no state.
//   Faults    makes no driver calls.
#pragma once

#include <cstdint>
#include <string_view>

#include "faults/driver/misuse.h"

namespace cuaudit::harness {

enum class Rule : std::uint8_t {
#define CUAUDIT_RULE(name, ...) name,
#include "harness/ledger/rules.def"
#undef CUAUDIT_RULE
};

enum class Level : std::uint8_t { Finding, Note, Told };

struct RuleRow {
  std::string_view name;
  Level level;
  std::string_view title, explanation, advice;
};

inline constexpr RuleRow kRules[] = {
#define CUAUDIT_RULE(name, id, level, verdict, title, explanation, advice) {id, Level::level, title, explanation, advice},
#include "harness/ledger/rules.def"
#undef CUAUDIT_RULE
};
inline constexpr std::size_t kRuleCount = sizeof(kRules) / sizeof(kRules[0]);

constexpr const RuleRow& Row(Rule rule) { return kRules[static_cast<std::size_t>(rule)]; }
constexpr std::string_view Name(Rule rule) { return Row(rule).name; }

constexpr Rule RuleOf(driver::MisuseRule rule) {
  switch (rule) {
#define CUAUDIT_MISUSE(name, text, help) \
  case driver::MisuseRule::name:         \
    return Rule::name;
#include "faults/driver/misuse.def"
#undef CUAUDIT_MISUSE
  }
  return {};
}

// Proved by a simulated world: a violation with two places.
constexpr bool IsProved(Rule rule) {
  for (std::size_t i = 0; i < driver::kMisuseRuleCount; ++i) {
    if (rule == RuleOf(static_cast<driver::MisuseRule>(i))) return true;
  }
  return false;
}

}  // namespace cuaudit::harness
