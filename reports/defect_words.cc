// SPDX-License-Identifier: MIT
#include "reports/defect_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "reports/plus.h"
#include "reports/runtime_modules.h"
#include "reports/text_page.h"
#include "reports/text_writer.h"

namespace cuaudit::report {
namespace {

// A function without a name is told by its address.
std::string FunctionOf(const Frame& frame) {
  if (!frame.function.empty()) return frame.function;
  return frame.start == 0 ? Describe(frame) : fmt::format("{}+{:#x}", frame.module, frame.start);
}

// The innermost function that has a name and is not of the runtime: by these a comparison knows a stack.
const Frame* NamedIn(const std::vector<Frame>& stack) {
  const auto found = std::find_if(stack.begin(), stack.end(),
                                  [](const Frame& frame) { return !frame.function.empty() && !IsRuntimeModule(frame.module); });
  return found == stack.end() ? nullptr : &*found;
}

}  // namespace

const Finding& RootOf(const Run& run, const Defect& defect) { return run.findings[defect.members.front().findings.front()]; }

std::string_view OtherIs(Rule rule) {
  if (rule == Rule::DestroyedUnderUser) return "destroyed by";
  if (rule == Rule::ClosedAfterImport) return "taken over by";
  return "collides with";
}

std::string RulesOf(const Run& run, const Defect& defect) {
  std::vector<Rule> rules;
  for (const Member& member : defect.members) {
    const Rule rule = run.findings[member.findings.front()].rule;
    if (std::find(rules.begin(), rules.end(), rule) == rules.end()) rules.push_back(rule);
  }
  std::string text;
  for (const Rule rule : rules) text += fmt::format("{}{}", text.empty() ? "" : ", ", words::Name(rule));
  return text;
}

std::string AmountOf(const Run& run, const Defect& defect) {
  struct Amount {
    std::string kind;
    std::uint64_t count;
    std::uint64_t bytes;
  };
  std::vector<Amount> amounts;
  for (const Member& member : defect.members) {
    const std::string& kind = run.findings[member.findings.front()].kind;
    if (kind.empty()) continue;
    const auto known = std::find_if(amounts.begin(), amounts.end(), [&](const Amount& one) { return one.kind == kind; });
    Amount& amount = known == amounts.end() ? amounts.emplace_back(Amount{kind, 0, 0}) : *known;
    amount.count = Plus(amount.count, member.count);
    amount.bytes = Plus(amount.bytes, member.bytes);
  }
  std::string text;
  for (const Amount& amount : amounts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", amount.count, amount.kind);
    if (amount.bytes != 0) text += fmt::format(" ({} bytes)", amount.bytes);
  }
  return text;
}

std::string BlameOf(const Run& run, const Defect& defect) {
  if (!defect.blame || !WasLost(RootOf(run, defect).rule)) return {};
  const std::string function = FunctionOf(defect.blame->function);
  const std::string& release = defect.released.call;
  switch (defect.blame->because) {
    case BlamedBecause::HeldIt:
      return release.empty() ? function + " held it, saw the failure and returned" : function + " returned without " + release;
    case BlamedBecause::BeganRelease:
      return function + " was entered to release it, and returned before " + release;
    case BlamedBecause::NeverReached:
      return function + ", which calls " + release + " without the fault, was not reached";
    case BlamedBecause::MadeTheCall:
      return function + " acquired it";
  }
  return {};
}

std::string_view Name(BlamedBecause because) {
  static constexpr std::array<std::string_view, 4> kNames = {"held_it", "began_release", "never_reached", "made_the_call"};
  return kNames[static_cast<std::size_t>(because)];
}

std::string Describe(const Run& run, const Defect& defect, const TakenFor& one) {
  std::string text = "taken for " + (one.function.empty() ? one.fingerprint : one.function) + " of the base (";
  text += std::string(words::Row(one.why).title) + ")";
  if (one.function.empty()) return text;
  if (!one.fingerprint.empty()) text += ", " + one.fingerprint;
  const Finding& root = RootOf(run, defect);
  const Frame* const acquirer = NamedIn(root.acquired.call.empty() ? root.where_stack : root.acquired.stack);
  const Frame* const blamed = defect.blame ? &defect.blame->function : nullptr;
  const bool by_blame = one.why == Taken::Blamed || one.why == Taken::Part || one.why == Taken::Whole;
  const Frame* const now = blamed != nullptr && (by_blame || acquirer == nullptr) ? blamed : acquirer;
  if (now == nullptr) return text;
  text += ": " + one.function + " -> " + Describe(*now);
  if (now == acquirer && blamed != nullptr && blamed->function != now->function) text += ", where " + Describe(*blamed) + " is blamed";
  return text;
}

std::uint64_t ObjectsLeft(const Run& run) {
  std::uint64_t objects = 0;
  for (const Finding& finding : run.findings) objects += finding.rule == Rule::LeftAtExit ? finding.count : 0;
  return objects;
}

bool IsSuppressed(const Defect& defect) { return defect.suppressed && !defect.suppressed->expired; }

std::string DefectCount(const Run& run) {
  std::size_t defects = 0;
  std::vector<bool> suppressed(run.findings.size());
  for (const Defect& defect : run.defects) {
    defects += IsSuppressed(defect) ? 0 : 1;
    if (!IsSuppressed(defect)) continue;
    for (const Member& member : defect.members) {
      for (const std::size_t finding : member.findings) suppressed[finding] = true;
    }
  }
  const auto findings = static_cast<std::uint64_t>(std::count(suppressed.begin(), suppressed.end(), false));
  std::string text = Plural(defects, "defect");
  if (findings != defects) text += ", " + Plural(findings, "finding");
  if (defects != run.defects.size()) text += fmt::format("; {} suppressed", run.defects.size() - defects);
  return text;
}

std::string SuppressedCount(const Run& run) {
  const auto count = static_cast<std::uint64_t>(std::count_if(run.defects.begin(), run.defects.end(), IsSuppressed));
  return count == 0 ? std::string() : Plural(count, "defect") + " suppressed";
}

std::string SuppressionOf(const Defect& defect) {
  if (!defect.suppressed) return {};
  const Suppressed& one = *defect.suppressed;
  return fmt::format("{} {} by {}: {} ({})", one.expired ? "its suppression expired, accepted until" : "suppressed until", one.until,
                     one.owner, one.reason, one.entry);
}

}  // namespace cuaudit::report
