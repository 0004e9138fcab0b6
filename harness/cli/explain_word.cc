// SPDX-License-Identifier: MIT
// Explains a word of a report: the id of an outcome, a verdict, a rule, a reason or a change.
#include <string>

#include "harness/cli/commands.h"
#include "harness/cli/session.h"
#include "harness/verdict/verdict.h"

namespace cuaudit::harness {
namespace {

void Add(std::string_view id, std::string_view what, std::string_view title, std::string_view explanation, std::string_view advice,
         std::string* page) {
  page->append(id).append(" (").append(what).append("): ").append(title).append("\n");
  if (!explanation.empty()) page->append("  ").append(explanation).append("\n");
  if (!advice.empty()) page->append("  What to do: ").append(advice).append("\n");
}

}  // namespace

Exit ExplainWord(const std::string& word) {
  std::string page;
  if (const std::optional<words::Outcome> outcome = Named<words::Outcome>(word)) {
    const words::OutcomeRow& row = Row(*outcome);
    Add(row.name, "outcome", row.title, row.explanation, row.advice, &page);
  }
  if (const std::optional<Rule> rule = Named<Rule>(word)) {
    const RuleRow& row = Row(*rule);
    Add(row.name, row.level == Level::Finding ? "rule, a finding" : "rule, a note", row.title, row.explanation, row.advice, &page);
  }
  if (const std::optional<Verdict> verdict = Named<Verdict>(word)) {
    const VerdictRow& row = Row(*verdict);
    Add(row.name, "verdict", row.title, row.explanation, row.advice, &page);
  }
  if (const std::optional<words::Change> change = Named<words::Change>(word); change && *change != words::Change::None) {
    const words::ChangeRow& row = Row(*change);
    Add(row.name, "said by compare", row.title, row.explanation, row.advice, &page);
  }
  if (const std::optional<Missed> missed = Named<Missed>(word); missed && *missed != Missed::Nothing) {
    Add(word, "why a trial proves nothing", Row(*missed).coverage, {}, Row(*missed).advice, &page);
  }
  if (const std::optional<Reason> reason = Named<Reason>(word)) {
    const ReasonRow& row = Row(*reason);
    const std::string about = std::string(kReasonGroups[static_cast<std::size_t>(row.group)]) + ".";
    Add(word, "reason", Filled(row.text, "[" + std::string(row.of) + "]"), about, row.advice, &page);
  }
  if (!page.empty()) return Print(page);
  Say("--rule: '" + word +
      "': expected an outcome, a verdict, a rule, a reason or a change: cuaudit list outcomes, verdicts, rules, missed, reasons or "
      "changes");
  return Exit::Usage;
}

}  // namespace cuaudit::harness
