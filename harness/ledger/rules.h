// SPDX-License-Identifier: MIT
// rules.h: the rules of reports/words/rules.def for the ledger, and which of them a simulated world proves.
//
//   Threads   safe everywhere; no state.
//   Faults    makes no driver calls.
#pragma once

#include "faults/driver/misuse.h"
#include "reports/words/words.h"

namespace cuaudit::harness {

using words::kRuleCount;
using words::kRules;
using words::Level;
using words::Name;
using words::Row;
using words::Rule;
using words::RuleRow;

constexpr Rule RuleOf(driver::MisuseRule rule) {
  switch (rule) {
#define CUAUDIT_MISUSE(name, ...) \
  case driver::MisuseRule::name:  \
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
