// SPDX-License-Identifier: MIT
#include "reports/defect_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reports/defect_words.h"
#include "reports/runtime_modules.h"
#include "reports/text_writer.h"

namespace cuaudit::report {
namespace {

// What the failing calls have to do with it: ", lost when X failed, and then Y".
std::string Failed(const Finding& finding) {
  std::string text;
  if (finding.fault) text += (WasLost(finding.rule) ? ", lost when " : ", after ") + finding.fault->text + " failed";
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
  if (WasLost(root.rule)) stacks.push_back(&root.acquired.stack);
  stacks.push_back(&root.where_stack);
  if (root.fault) stacks.push_back(&root.fault->stack);
  if (!WasLost(root.rule)) stacks.push_back(&root.acquired.stack);
  stacks.push_back(&root.other.stack);
  return stacks;
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
  if (!root.other.call.empty()) steps.push_back({std::string(OtherIs(root.rule)) + " " + root.other.call, root.other.stack});
  if (root.fault) steps.push_back({root.fault->text + " fails", root.fault->stack});
  for (const Fault& fault : root.then) steps.push_back({"then " + fault.text + " fails", fault.stack});
  AddWayBack(run, defect, &steps);
  const Step seen{"seen at " + root.where, root.where_stack};
  if (!WasLost(root.rule)) {
    if (!root.where.empty()) steps.push_back(seen);
    return steps;
  }
  std::vector<Frame> at;
  if (const std::string blame = BlameOf(run, defect); !blame.empty()) {
    at = {defect.blame->function};
    steps.push_back({blame, at, false});
  }
  if (!root.where.empty()) {
    steps.push_back(seen);
    at = root.where_stack;
  }
  steps.push_back({Amount(run, defect) + (root.rule == Rule::Growth ? ": more with each cycle" : " lost"), std::move(at), false});
  return steps;
}

std::optional<Step> ReleaseOf(const Defect& defect) {
  if (defect.released.call.empty()) return std::nullopt;
  return Step{"without the fault released by " + defect.released.call, defect.released.stack};
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
  const std::string module = frame.module.empty() ? "?" : frame.module;
  return frame.function.empty() ? fmt::format("{}+{:#x}", module, frame.offset) : module + "!" + frame.function;
}

}  // namespace cuaudit::report
