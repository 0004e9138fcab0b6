// SPDX-License-Identifier: MIT
// rules.h: the rules of reports/words/rules.def as the ledger uses them, and which of them the simulated driver proves.
#pragma once

#include "faults/driver/misuse.h"
#include "reports/words/words.h"

namespace cuaudit::harness {

using words::Detail;
using words::Details;
using words::IsLoss;
using words::IsUnsettled;
using words::kRuleCount;
using words::kRules;
using words::Level;
using words::Name;
using words::OtherCallOf;
using words::Row;
using words::Rule;
using words::RuleRow;
using words::RuleSort;
using words::SortOf;
using words::WithoutItsContext;

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

// True for a rule that the simulated driver proves. Its violations name two places.
constexpr bool IsProved(Rule rule) {
  for (std::size_t i = 0; i < driver::kMisuseRuleCount; ++i) {
    if (rule == RuleOf(static_cast<driver::MisuseRule>(i))) return true;
  }
  return false;
}

}  // namespace cuaudit::harness
