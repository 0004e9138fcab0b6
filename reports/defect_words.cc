// SPDX-License-Identifier: MIT
#include "reports/defect_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "reports/audit.h"
#include "reports/frames.h"
#include "reports/text_page.h"

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
    Rule rule;
    std::uint64_t count;
    std::uint64_t bytes;
  };
  std::vector<Amount> amounts;
  for (const Member& member : defect.members) {
    const Finding& finding = run.findings[member.findings.front()];
    if (finding.kind.empty()) continue;
    const auto same = [&](const Amount& one) {
      return one.kind == finding.kind && (one.rule == finding.rule || (words::IsLoss(one.rule) && words::IsLoss(finding.rule)));
    };
    const auto known = std::find_if(amounts.begin(), amounts.end(), same);
    Amount& amount = known == amounts.end() ? amounts.emplace_back(Amount{finding.kind, finding.rule, 0, 0}) : *known;
    amount.count = Plus(amount.count, member.count);
    amount.bytes = Plus(amount.bytes, member.bytes);
  }
  // Several rules that are broken with one object each have it: the most of one rule is said, and the way it was lost beside it.
  std::vector<Amount> said;
  for (const Amount& amount : amounts) {
    const auto same = std::find_if(said.begin(), said.end(), [&](const Amount& one) {
      return one.kind == amount.kind && !words::IsLoss(one.rule) && !words::IsLoss(amount.rule);
    });
    if (same == said.end()) {
      said.push_back(amount);
    } else if (same->count < amount.count) {
      *same = amount;
    }
  }
  amounts = std::move(said);
  std::string text;
  for (const Amount& amount : amounts) {
    const auto of_kind = std::count_if(amounts.begin(), amounts.end(), [&](const Amount& one) { return one.kind == amount.kind; });
    std::string more = amount.bytes == 0 ? "" : fmt::format("{} bytes", amount.bytes);
    if (of_kind > 1) more += fmt::format("{}{}", more.empty() ? "" : ", ", words::Name(amount.rule));
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", amount.count, amount.kind);
    if (!more.empty()) text += fmt::format(" ({})", more);
  }
  return text;
}

namespace {

// What the blamed function left out: the call of the fault-free run, or what every program owes under this rule. Empty: nobody can say.
std::string Owed(Rule rule, const Defect& defect) {
  if (rule == Rule::SettingNotRestored) return "putting the setting back";
  if (!defect.released.call.empty()) return defect.released.call;
  if (rule == Rule::CaptureLeftActive) return "cuStreamEndCapture";
  if (rule == Rule::ContextStack) return "cuCtxPopCurrent";
  if (rule == Rule::ContextNotRestored) return "making the former context current again";
  return {};
}

// True when the call that failed is the one that takes the object over in the fault-free run. Nobody knows what releases it otherwise.
bool HandsOver(const Finding& root, const std::string& release) {
  const bool may_be = root.kind == "user_object" || root.kind == "file_descriptor";
  return may_be && root.fault && root.fault->call == release;
}

// True for a rule about something that was left as it was not found. A function that pops too much made a wrong call instead.
bool OwesSomething(const Finding& root) {
  if (words::SortOf(root.rule) == words::RuleSort::Entry) return !root.acquired.call.empty();
  return words::IsLoss(root.rule) || words::SortOf(root.rule) == words::RuleSort::Changed;
}

}  // namespace

std::string BlameOf(const Run& run, const Defect& defect) {
  if (!defect.blame) return {};
  const Finding& root = RootOf(run, defect);
  if (!OwesSomething(root)) return {};
  if (!words::IsLoss(root.rule) && defect.blame->because == BlamedBecause::MadeTheCall) return {};
  const std::string function = FunctionOf(defect.blame->function);
  const std::string release = Owed(root.rule, defect);
  const bool orphaned = root.rule == Rule::Orphaned;
  const std::string& declined = orphaned ? root.other.call : root.where;
  if ((orphaned || root.rule == Rule::Leak) && !declined.empty()) {
    const Frame* const caller = NamedIn(orphaned ? root.other.stack : root.where_stack);
    return (caller == nullptr ? function : FunctionOf(*caller)) + " called " + declined + ", and the driver refused it";
  }
  switch (defect.blame->because) {
    case BlamedBecause::HeldIt:
      return release.empty() || HandsOver(root, release) ? function + " held it, saw the failure and returned"
                                                         : function + " returned without " + release;
    case BlamedBecause::BeganRelease:
      return HandsOver(root, release) ? function + " was to hand it over, saw the failure and returned"
                                      : function + " was entered to release it, and returned without " + release + " for it";
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

std::vector<bool> SuppressedFindings(const Run& run) {
  std::vector<bool> suppressed(run.findings.size());
  for (const bool value : {true, false}) {
    for (const Defect& defect : run.defects) {
      if (IsSuppressed(defect) != value) continue;
      for (const Member& member : defect.members) {
        for (const std::size_t finding : member.findings) suppressed[finding] = value;
      }
    }
  }
  return suppressed;
}

std::string DefectCount(const Run& run) {
  std::size_t defects = 0;
  std::size_t expired = 0;
  for (const Defect& defect : run.defects) {
    defects += IsSuppressed(defect) ? 0 : 1;
    expired += defect.suppressed && defect.suppressed->expired ? 1 : 0;
  }
  const std::vector<bool> suppressed = SuppressedFindings(run);
  const auto findings = static_cast<std::uint64_t>(std::count(suppressed.begin(), suppressed.end(), false));
  std::string text = Plural(defects, "defect");
  if (findings != defects) text += ", " + Plural(findings, "finding");
  if (defects != run.defects.size()) text += fmt::format("; {} suppressed", run.defects.size() - defects);
  if (expired != 0) text += fmt::format("; {} {} expired", expired, expired == 1 ? "suppression has" : "suppressions have");
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

namespace {

// What the failing calls have to do with it: ", lost when X failed, and then Y".
std::string Failed(const Finding& finding) {
  std::string text;
  if (finding.fault) text += (words::IsLoss(finding.rule) ? ", lost when " : ", after ") + finding.fault->text + " failed";
  for (const Fault& fault : finding.then) text += ", and then " + fault.text;
  return text;
}

std::string Amount(const Run& run, const Defect& defect) {
  std::string amount = AmountOf(run, defect);
  return amount.empty() ? std::string(words::Row(RootOf(run, defect).rule).title) : amount;
}

// Stacks of the defect; the one that tells most first.
std::vector<const std::vector<Frame>*> StacksOf(const Run& run, const Defect& defect) {
  const Finding& root = RootOf(run, defect);
  std::vector<const std::vector<Frame>*> stacks;
  if (words::IsLoss(root.rule)) stacks.push_back(&root.acquired.stack);
  stacks.push_back(&root.where_stack);
  if (root.fault) stacks.push_back(&root.fault->stack);
  if (!words::IsLoss(root.rule)) stacks.push_back(&root.acquired.stack);
  stacks.push_back(&root.other.stack);
  return stacks;
}

// When the other call of a finding was made. A release that came too early mostly belongs to the failing path.
enum class OtherWhen : std::uint8_t { Never, First, BeforeSeen, AfterSeen };

OtherWhen WhenOther(Rule rule) {
  if (words::SortOf(rule) == words::RuleSort::Changed) return OtherWhen::AfterSeen;
  return words::OtherCallOf(rule).tells_apart ? OtherWhen::First : OtherWhen::BeforeSeen;
}

constexpr std::size_t kMostCallsBack = 50;

// The calls after the last failing one, which comes first in Unwinding::steps. A way back from other faults is left out.
void AddWayBack(const Run& run, const Defect& defect, std::vector<Step>* steps) {
  const Finding& root = RootOf(run, defect);
  if (!defect.unwinding || !run.sequence || !root.fault) return;
  std::vector<std::string> faults = {root.fault->text};
  for (const Fault& fault : root.then) faults.push_back(fault.text);
  const Unwinding& back = *defect.unwinding;
  if (back.faults != faults || back.steps.empty()) return;
  const std::size_t told = std::min(back.steps.size() - 1, kMostCallsBack);
  for (std::size_t i = 1; i <= told; ++i) {
    if (back.steps[i].place >= run.sequence->places.size()) continue;
    const CallPlace& place = run.sequence->places[back.steps[i].place];
    const std::string& result = back.steps[i].result;
    std::vector<Frame> at;
    if (place.at) at.push_back(*place.at);
    steps->push_back({"on the way back " + place.call + (result.empty() ? "" : " fails: " + result), std::move(at), false, true});
  }
  const std::uint64_t rest = back.more + (back.steps.size() - 1 - told);
  if (rest != 0) steps->push_back({fmt::format("and {} more call{}", rest, rest == 1 ? "" : "s"), {}, false, true});
}

// Where the step "X returned without ..." belongs: in front of the first call on the way back that a caller of X makes, for X has returned
// then. Without such a call it is the last step of the way back.
std::vector<Step>::iterator ReturnOf(const Finding& root, const Blame& blame, std::vector<Step>* steps) {
  const Fault* const last = root.then.empty() ? (root.fault ? &*root.fault : nullptr) : &root.then.back();
  if (last == nullptr || blame.because != BlamedBecause::HeldIt) return steps->end();
  const auto is_in = [](const Frame& frame) {
    return [&frame](const Frame& other) { return frame.module == other.module && FunctionOf(frame) == FunctionOf(other); };
  };
  const auto blamed = std::find_if(last->stack.begin(), last->stack.end(), is_in(blame.function));
  if (blamed == last->stack.end()) return steps->end();
  return std::find_if(steps->begin(), steps->end(), [&](const Step& step) {
    if (!step.on_way_back || step.stack.empty() || is_in(blame.function)(step.stack.front())) return false;
    return std::any_of(blamed + 1, last->stack.end(), is_in(step.stack.front()));
  });
}

}  // namespace

std::string Headline(const Finding& finding) {
  std::string line(words::Name(finding.rule));
  if (!finding.kind.empty()) line += ": " + std::to_string(finding.count) + " " + finding.kind;
  if (finding.bytes != 0) line += ", " + std::to_string(finding.bytes) + " bytes";
  return line + Failed(finding);
}

std::string Headline(const Run& run, const Defect& defect) {
  std::string line = RulesOf(run, defect);
  if (const std::string amount = AmountOf(run, defect); !amount.empty()) line += ": " + amount;
  line += Failed(RootOf(run, defect));
  if (defect.trials > 1) line += ", in " + std::to_string(defect.trials) + " trials";
  return line;
}

std::string Sentence(const Run& run, const Defect& defect) {
  const Finding& root = RootOf(run, defect);
  std::string text = AmountOf(run, defect);
  text += (text.empty() ? "" : ": ") + std::string(words::Row(root.rule).title) + Failed(root);
  if (const std::string blame = BlameOf(run, defect); !blame.empty()) text += "; " + blame;
  return text + ".";
}

std::vector<Step> StepsOf(const Run& run, const Defect& defect) {
  const Finding& root = RootOf(run, defect);
  std::vector<Step> steps;
  if (!root.acquired.call.empty()) steps.push_back({"acquired by " + root.acquired.call, root.acquired.stack});
  const OtherWhen other = root.other.call.empty() ? OtherWhen::Never : WhenOther(root.rule);
  const auto add_other = [&] {
    steps.push_back({std::string(words::OtherCallOf(root.rule).is) + " " + root.other.call, root.other.stack});
  };
  if (other == OtherWhen::First) add_other();
  if (root.fault) steps.push_back({root.fault->text + " fails", root.fault->stack});
  for (const Fault& fault : root.then) steps.push_back({"then " + fault.text + " fails", fault.stack});
  AddWayBack(run, defect, &steps);
  const Step seen{"seen at " + root.where, root.where_stack};
  if (!words::IsLoss(root.rule)) {
    if (other == OtherWhen::BeforeSeen) add_other();
    if (!root.where.empty()) steps.push_back(seen);
    if (other == OtherWhen::AfterSeen) add_other();
    return steps;
  }
  std::vector<Frame> at;
  if (const std::string blame = BlameOf(run, defect); !blame.empty()) {
    at = {defect.blame->function};
    steps.insert(ReturnOf(root, *defect.blame, &steps), {blame, at, false});
  }
  if (!root.where.empty()) {
    steps.push_back(seen);
    at = root.where_stack;
  }
  steps.push_back({Amount(run, defect) + (root.rule == Rule::Growth ? ": more with each cycle" : " lost"), std::move(at), false});
  return steps;
}

std::optional<Step> ReleaseOf(const Run& run, const Defect& defect) {
  if (defect.released.call.empty()) return std::nullopt;
  const bool is_change = words::SortOf(RootOf(run, defect).rule) == words::RuleSort::Changed;
  return Step{fmt::format("without the fault {} by {}", is_change ? "put back" : "released", defect.released.call), defect.released.stack};
}

std::optional<SourcePlace> PlaceOf(const SourceRoot& root, const Run& run, const Defect& defect) {
  for (const std::vector<Frame>* const stack : StacksOf(run, defect)) {
    if (std::optional<SourcePlace> place = root.Find(*stack)) return place;
  }
  return defect.blame ? root.Find(defect.blame->function) : std::nullopt;
}

const Frame* FrameOf(const std::vector<Frame>& stack) {
  const auto found = std::find_if(stack.begin(), stack.end(), [](const Frame& frame) { return !IsRuntimeModule(frame.module); });
  if (found != stack.end()) return &*found;
  return stack.empty() ? nullptr : &stack.front();
}

const Frame* FrameOf(const Run& run, const Defect& defect) {
  for (const std::vector<Frame>* const stack : StacksOf(run, defect)) {
    if (const Frame* const frame = FrameOf(*stack)) return frame;
  }
  return defect.blame ? &defect.blame->function : nullptr;
}

std::string Qualified(const Frame& frame) {
  return frame.function.empty() ? Describe(frame) : (frame.module.empty() ? "?" : frame.module) + "!" + frame.function;
}

}  // namespace cuaudit::report
