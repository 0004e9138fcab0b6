// SPDX-License-Identifier: MIT
#include "reports/message.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/audit.h"
#include "reports/defect_words.h"
#include "reports/frames.h"
#include "reports/text_page.h"

namespace cuaudit::report {
namespace {

constexpr std::string_view kModes[] = {"", "run", "cycles", "sweep", "replay"};

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string line;
  for (const std::string& part : parts) line += (line.empty() ? "" : between) + part;
  return line;
}

std::string HowMany(const Part& part, const char* what) {
  return std::to_string(part.some) + " of " + std::to_string(part.all) + " " + what;
}

std::string Percent(std::uint64_t tenths) { return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %"; }

std::string NeverFiredText(const NeverFired& never) {
  if (never.trials.empty()) return {};
  if (never.of > 1) {
    const bool late = never.trials.contains(Missed::Late);
    return HowMany({never.faults.size(), never.of}, "faults never fired: ") + Joined(never.faults, ", ") +
           (late ? ", " + std::string(words::Row(Missed::Late).outcome) : "");
  }
  std::uint64_t trials = 0;
  for (const auto& [why, count] : never.trials) trials += count;
  if (trials == never.planned && never.trials.size() == 1) {
    const Missed why = never.trials.begin()->first;
    if (why == Missed::Unfired) return "no fault fired, the program did not make those calls again";
    if (why == Missed::Late) return "no fault fired, the program did not reach those calls within the deadline";
  }
  std::vector<std::string> reasons;
  for (const auto& [why, count] : never.trials) {
    reasons.push_back(std::to_string(count) + " " + words::Filled(words::Row(why).outcome, never.journals));
  }
  return HowMany({trials, never.planned}, "planned faults never fired: ") + Joined(reasons, ", ");
}

std::uint64_t PrunedOf(const Run& run) {
  std::uint64_t pruned = 0;
  for (const auto& [reason, count] : run.totals.pruned) pruned += count;
  return pruned;
}

std::string CleanFor(const Part& chosen) { return "clean for " + HowMany(chosen, "planned faults"); }

std::string CleanFor(const Run& run) {
  if (!run.message.chosen) return {};
  const std::uint64_t pruned = PrunedOf(run);
  const std::string left_out = Describe(LeftOutOf(run));
  return CleanFor(*run.message.chosen) + (pruned == 0 ? "" : ", " + std::to_string(pruned) + " pruned as equal (--no-prune tries them)") +
         (left_out.empty() ? "" : ", " + left_out);
}

// "5 stream acquired by cuStreamCreate < load src/load.c:14; 1 event acquired by …"
std::string LeftText(const Run& run) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> places;
  std::size_t count = 0;
  for (const Defect& defect : run.defects) {
    if (IsSuppressed(defect) || ++count > kMost) continue;
    const Acquired& acquired = RootOf(run, defect).acquired;
    const std::string origin = DescribeOrigin(acquired.stack);
    places.push_back(AmountOf(run, defect) + " acquired by " + acquired.call + (origin.empty() ? "" : " < " + origin));
  }
  if (count > kMost) places.push_back(std::to_string(count - kMost) + " more");
  return Joined(places, "; ");
}

std::string InterruptedText(const Interrupted& one, bool trials) {
  if (one.planned == 0)
    return std::string("interrupted ") + (trials ? "in the fault-free runs" : "before the first run") + " (" + one.signal + ")";
  return "interrupted, " + HowMany({one.done, one.planned}, trials ? "trials" : "runs") + (one.more ? " planned so far" : "") + " (" +
         one.signal + ")";
}

bool MakesTrials(const Run& run) { return run.mode == Mode::Sweep || run.mode == Mode::Replay; }

}  // namespace

std::string_view Name(Mode mode) { return kModes[static_cast<std::size_t>(mode)]; }

std::uint64_t Skipped(const Run& run, Reason why) {
  std::uint64_t count = 0;
  for (const auto& [because, number] : run.totals.skipped) count += because.reason == why ? number : 0;
  return count;
}

LeftOut LeftOutOf(const Run& run) { return {Skipped(run, Reason::OverBudget), Skipped(run, Reason::BeyondLimit)}; }

std::string Describe(const LeftOut& left_out) {
  std::string text;
  if (left_out.over_budget != 0) text = Plural(left_out.over_budget, "trial") + " left out when --budget was spent";
  if (left_out.beyond_limit == 0) return text;
  return text.empty() ? Plural(left_out.beyond_limit, "trial") + " left out beyond --limit"
                      : fmt::format("{}, {} beyond --limit", text, left_out.beyond_limit);
}

std::string_view OutcomeName(const Run& run) { return run.outcome ? words::Name(*run.outcome) : std::string_view(); }

std::string WhyInPart(const Message& message) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::string part) {
    if (!part.empty()) parts.push_back(std::move(part));
  };
  add(message.told);
  if (message.untried) add(std::string(kUntried) + ", after " + HowMany(*message.untried, "trials"));
  if (message.nothing == NothingPlanned::NothingCanFail) add("no call of the program can be made to fail");
  if (message.nothing == NothingPlanned::NothingChosen) add("--call or --limit left no fault to try");
  add(NeverFiredText(message.never_fired));
  if (message.abandoned) {
    add(HowMany(*message.abandoned, "trials abandoned at exit, and heap blocks were not looked at") +
        ": --host tells whether they unwound, --abandoned-is-leak reports what they left");
  }
  if (message.undecided) add(Describe(*message.undecided));
  if (message.coverage) {
    add("fault coverage is " + Percent(message.coverage->some) + ", wanted at least " + Percent(message.coverage->all) +
        " (--coverage-at-least)");
  }
  if (message.bad_end) {
    add(words::Words({words::Detail::EndedOtherwise, {message.bad_end->how, std::to_string(message.bad_end->expected)}}));
  }
  return Joined(parts, "; ");
}

std::string Explanation(const Run& run) {
  if (run.outcome == Outcome::Clean) return CleanFor(run);
  if (run.outcome == Outcome::Left) return LeftText(run);
  if (run.interrupted) return InterruptedText(*run.interrupted, MakesTrials(run));
  return WhyInPart(run.message);
}

std::string CleanInWords(const Run& run) {
  const std::optional<Part>& chosen = run.message.chosen;
  return chosen && Plus(chosen->some, PrunedOf(run)) < chosen->all ? CleanFor(*chosen) : "clean";
}

namespace {

// What a clean report says beside being clean: "2 defects suppressed; 3 host places left, judged with --host". Empty when there is nothing.
std::string BesideClean(const Run& run) {
  if (run.outcome != Outcome::Clean) return {};
  // Other commands make no trials after which the host could be looked at.
  const std::string notes = MakesTrials(run) ? HostNotes(run) : std::string();
  const std::string suppressed = SuppressedCount(run);
  return suppressed + (suppressed.empty() || notes.empty() ? "" : "; ") + notes;
}

}  // namespace

std::string MessageLine(const Run& run) {
  const std::string text = Explanation(run);
  if (run.outcome == Outcome::NotExercised) return text.empty() ? "not exercised" : "not exercised: " + text;
  const std::string shown = BesideClean(run);
  return shown.empty() ? text : (text.empty() ? "clean" : text) + "; " + shown;
}

InWords Words(const Counted& counts) {
  InWords texts;
  for (const auto& [why, count] : counts) texts[words::Words(why)] += count;
  return texts;
}

InWords Words(const std::map<Verdict, std::uint64_t>& verdicts) {
  InWords texts;
  for (const auto& [verdict, count] : verdicts) texts[std::string(words::Name(verdict))] += count;
  return texts;
}

InWords Words(const std::map<Ran, std::uint64_t>& trials) {
  InWords texts;
  for (const auto& [ran, count] : trials) {
    texts[std::string(words::Name(ran.in)) + (ran.instead.empty() ? "" : ": " + words::Words(ran.instead))] += count;
  }
  return texts;
}

std::string_view Words(const NotReached& row) {
  return row.why == Reason::None ? words::Row(row.missed).coverage : words::Row(row.why).coverage;
}

std::string HostNotes(const Run& run) {
  const auto places = [&run](Rule rule) {
    return std::count_if(run.notes.begin(), run.notes.end(), [rule](const Finding& note) { return note.rule == rule; });
  };
  std::string text;
  const auto add = [&text](auto count, const char* what) {
    if (count == 0) return;
    const char* const of = !text.empty() ? "" : count == 1 ? " host place" : " host places";
    text += (text.empty() ? "" : ", ") + std::to_string(count) + of + what;
  };
  add(places(Rule::HostLeft), " left");
  add(places(Rule::HostMisused), " misused");
  return text.empty() ? text : text + ", judged with --host";
}

namespace {

constexpr std::string_view kTrends[] = {"steady", "growth", "bounded", "undecided"};

// "0.98", "1"
std::string Rate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  return text.ends_with(".00") ? text.substr(0, text.size() - 3) : text;
}

}  // namespace

std::string_view Name(Trend trend) { return kTrends[static_cast<std::size_t>(trend)]; }

std::string Describe(const Course& course) {
  const std::string least = Rate(course.least);
  const std::string most = Rate(course.most);
  switch (course.trend) {
    case Trend::Steady:
      return {};
    case Trend::Growth:
      return fmt::format("{}{} more a cycle, up to {} cycles", least == most ? "" : least + " to ", most, course.cycles);
    case Trend::Bounded:
      return fmt::format("{} after {} cycles, no more after {}", course.plateau, course.reached, course.cycles);
    case Trend::Undecided:
      if (course.reached == course.cycles)
        return fmt::format("{} after {} cycles, not steadily: {} cycles would tell", course.plateau, course.reached, course.needed);
      return fmt::format("{} after {} cycles, no more after {}: {} cycles would tell", course.plateau, course.reached, course.cycles,
                         course.needed);
  }
  return {};
}

std::string Describe(const Undecided& undecided) {
  return fmt::format("{} grew, and these cycles do not tell a leak from a cache that fills: {} cycles would",
                     undecided.places == 1 ? std::string("1 place") : fmt::format("{} places", undecided.places), undecided.cycles);
}

std::string Describe(const Kernels& kernels) {
  std::string text;
  if (kernels.hosted != 0) text = fmt::format("host kernels stood in for {}", kernels.hosted);
  if (kernels.idle == 0) return text;
  text += fmt::format("{}{} of kernels did nothing: register host kernels with --kernels", text.empty() ? "" : "; ",
                      kernels.idle == 1 ? std::string("1 launch") : fmt::format("{} launches", kernels.idle));
  if (kernels.mismatched != 0)
    text += fmt::format("; of these, {} had other parameters than the host kernel registered", kernels.mismatched);
  return text;
}

std::string Describe(const Coverage& coverage) {
  const std::uint64_t tenths = PerMille(coverage);
  std::string text = fmt::format("{}.{} %: {} of {} ways to fail, {} of {} documented errors of these calls", tenths / 10, tenths % 10,
                                 coverage.reached, coverage.reachable, coverage.codes_tried, coverage.codes_documented);
  if (coverage.pruned != 0) text += fmt::format("; {} not tried, pruned as equal", Plural(coverage.pruned, "fault"));
  return text;
}

}  // namespace cuaudit::report
