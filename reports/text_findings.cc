// SPDX-License-Identifier: MIT
#include "reports/text_findings.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/message.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kShownCalls = 20;         // failing calls shown per group
constexpr std::size_t kShownReproductions = 3;  // a group with more failing calls shows only the first command
constexpr std::size_t kShownNotes = 5;          // notes shown per rule
constexpr std::size_t kShownLeft = 10;

bool SamePlace(const Frame& a, const Frame& b) {
  return a.offset == b.offset && a.line == b.line && a.module == b.module && a.function == b.function && a.file == b.file;
}

bool SamePlace(const std::vector<Frame>& a, const std::vector<Frame>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Frame& x, const Frame& y) { return SamePlace(x, y); });
}

bool SamePlace(const Finding& a, const Finding& b) {
  return a.rule == b.rule && a.kind == b.kind && a.acquired.call == b.acquired.call && a.where == b.where && a.other.call == b.other.call &&
         SamePlace(a.acquired.stack, b.acquired.stack) && SamePlace(a.where_stack, b.where_stack) &&
         SamePlace(a.other.stack, b.other.stack);
}

// "3 stream, 4096 bytes, in 2 trials". Parts that do not apply are left out.
std::string Amount(const Finding& finding) {
  std::string text = finding.kind.empty() ? "" : fmt::format("{} {}", finding.count, ForTerminal(finding.kind));
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (finding.bytes != 0) add(fmt::format("{} bytes", finding.bytes));
  if (finding.trials > 1)
    add(IsHostNote(finding.rule) ? fmt::format("after {} faults", finding.trials) : fmt::format("in {} trials", finding.trials));
  return text;
}

void AppendStack(const std::vector<Frame>& stack, Page* page) {
  for (const Frame& frame : ShownFrames(stack)) page->Line("       {}", ForTerminal(Describe(frame)));
}

// Writes the other call of the finding: the one that queued the operation which collides with the one at `where`, or that destroyed
// something.
void AppendOther(const Finding& finding, Page* page) {
  if (finding.other.call.empty() && finding.other.stack.empty()) return;
  const bool same = !finding.other.stack.empty() && SamePlace(finding.other.stack, finding.where_stack);
  page->Line("     {} {}{}", words::OtherCallOf(finding.rule).is, page->Paint(kBold, ForTerminal(finding.other.call)),
             same ? (finding.other.call == finding.where ? ", the same line again" : ", called from the same place") : "");
  if (!same) AppendStack(finding.other.stack, page);
}

void AppendOrigin(const Finding& finding, Page* page) {
  const Acquired& acquired = finding.acquired;
  const bool has_origin = !acquired.call.empty() || !acquired.stack.empty();
  if (has_origin) {
    page->Line("     acquired by {}", page->Paint(kBold, ForTerminal(acquired.call)));
    AppendStack(acquired.stack, page);
  }
  if (finding.where.empty() && finding.where_stack.empty()) return;
  const bool same_stack = has_origin && !finding.where_stack.empty() && SamePlace(acquired.stack, finding.where_stack);
  const bool same_call = same_stack && acquired.call == finding.where;
  if (same_call && finding.other.call.empty()) return;  // the acquisition itself is wrong; a call that collides with another comes later
  page->Line("     seen at {}{}", page->Paint(kBold, ForTerminal(finding.where)),
             same_call    ? ", the same line again"
             : same_stack ? ", called from the same place"
                          : "");
  if (!same_stack) AppendStack(finding.where_stack, page);
}

std::string Joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + ForTerminal(word);
  return line;
}

}  // namespace

std::string Place(std::string_view call, const std::vector<Frame>& stack) {
  std::string text = ForTerminal(call);
  const std::string origin = DescribeOrigin(stack);
  if (!origin.empty()) text += (text.empty() ? "" : " < ") + ForTerminal(origin);
  return text;
}

std::string Failing(const Finding& finding, const Page& page) {
  std::string line =
      fmt::format("{} {} failed", words::IsLoss(finding.rule) ? "lost when" : "after", page.Paint(kBold, ForTerminal(finding.fault->text)));
  for (const Fault& fault : finding.then) line += fmt::format(", and then {}", page.Paint(kBold, ForTerminal(fault.text)));
  return line;
}

namespace {

void AppendPlaces(const Finding& finding, Page* page) {
  AppendOrigin(finding, page);
  AppendOther(finding, page);
}

void AppendFault(const Finding& finding, Page* page) {
  if (!finding.fault) return;
  page->Line("     {}", Failing(finding, *page));
  if (finding.where_stack.empty() || !SamePlace(finding.where_stack, finding.fault->stack)) AppendStack(finding.fault->stack, page);
  for (const Fault& fault : finding.then) {
    page->Line("     then {}", page->Paint(kBold, ForTerminal(fault.text)));
    AppendStack(fault.stack, page);
  }
  if (!finding.shrunk_from.empty()) page->Line("     shrunk from {}", Joined(finding.shrunk_from));
}

void AppendReproduce(const Finding& finding, std::string_view indent, Page* page) {
  if (!finding.reproduce.empty()) page->Line("{}reproduce {}", indent, ForTerminal(finding.reproduce));
}

void AppendOne(const Finding& finding, Page* page) {
  AppendPlaces(finding, page);
  AppendFault(finding, page);
  AppendReproduce(finding, "     ", page);
}

void AppendMany(const Group& group, Page* page) {
  AppendPlaces(*group.front(), page);
  const bool all_reproductions = group.size() <= kShownReproductions;
  const std::size_t shown = std::min(group.size(), kShownCalls);
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = *group[i];
    std::string line = finding.fault ? Failing(finding, *page) : "without a fault";
    if (finding.fault && !finding.fault->stack.empty()) line += " at " + ForTerminal(DescribeOrigin(finding.fault->stack));
    const std::string amount = Amount(finding);
    page->Line("     {}{}{}", line, amount.empty() ? "" : ": ", amount);
    if (i == 0 || all_reproductions) AppendReproduce(finding, "       ", page);
  }
  if (shown < group.size()) {
    page->Line("     … and {} more, see --format json", group.size() - shown);
  } else if (!all_reproductions) {
    page->Line("     … and {} more reproduce lines, see --format json", group.size() - 1);
  }
}

void AppendNote(const Finding& note, Page* page) {
  std::string line = Amount(note);
  const auto add = [&line](std::string_view before, const std::string& part) {
    if (!part.empty()) line += fmt::format("{}{}{}", line.empty() ? "" : ", ", before, part);
  };
  add("", Place(note.acquired.call, note.acquired.stack));
  add("seen at ", Place(note.where, note.where_stack));
  add(fmt::format("{} ", words::OtherCallOf(note.rule).is), Place(note.other.call, note.other.stack));
  if (!note.detail.empty()) add("", ForTerminal(note.detail));
  if (note.fault) {
    const bool placed = !note.acquired.call.empty() || !note.where.empty();
    const std::string at = placed ? "" : DescribeOrigin(note.fault->stack);
    add("fault ", ForTerminal(note.fault->text) + (at.empty() ? "" : " at " + ForTerminal(at)));
  }
  for (const Fault& fault : note.then) add("then ", ForTerminal(fault.text));
  if (!line.empty()) page->Line("    {}", line);
}

bool StandsUnderTable(const Run& run, const Finding& note) {
  return run.mode == Mode::Run && (note.rule == Rule::ProcessLifetime || note.rule == Rule::ReliedOnContext);
}

}  // namespace

std::vector<Group> GroupByPlace(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return SamePlace(*group.front(), finding); });
    if (same == groups.end()) {
      groups.push_back({&finding});
    } else {
      same->push_back(&finding);
    }
  }
  return groups;
}

void AppendFindings(const std::vector<Group>& groups, Page* page) {
  std::size_t number = 0;
  for (const Group& group : groups) {
    const Finding& first = *group.front();
    const bool one = group.size() == 1;
    const std::string what =
        one ? Amount(first) : fmt::format("{}{} findings", first.kind.empty() ? "" : ForTerminal(first.kind) + ", ", group.size());
    page->Line("");
    page->Line("{:>3}. {}{}{}", ++number, page->Paint(kRed, words::Name(first.rule)), what.empty() ? "" : ": ", what);
    if (!first.title.empty()) {
      page->Line("     {}", page->Paint(kDim, ForTerminal(first.title + (first.detail.empty() ? "" : ": " + first.detail))));
    }
    one ? AppendOne(first, page) : AppendMany(group, page);
  }
}

std::uint64_t LeftAtExit(const Run& run, Of of) {
  const std::vector<std::string>& host = run.host.probes;
  std::uint64_t left = 0;
  for (const LiveRow& row : run.live) {
    const bool of_host = std::find(host.begin(), host.end(), row.kind) != host.end();
    if (of_host == (of == Of::Host)) left += row.live;
  }
  return left;
}

std::uint64_t OrphanedBeforeExit(const Run& run) {
  std::uint64_t orphaned = 0;
  for (const LiveRow& row : run.live) orphaned += row.orphaned;
  return orphaned;
}

namespace {

void AppendList(std::string_view head, std::vector<const Finding*> left, Page* page) {
  if (left.empty()) return;
  std::stable_sort(left.begin(), left.end(), [](const Finding* a, const Finding* b) { return a->count > b->count; });
  page->Line("");
  page->Line("{}", head);
  for (std::size_t i = 0; i < std::min(left.size(), kShownLeft); ++i) AppendNote(*left[i], page);
  if (left.size() > kShownLeft) page->Line("    … {} more", left.size() - kShownLeft);
}

}  // namespace

void AppendLeftAtExit(const Run& run, Page* page) {
  std::vector<const Finding*> left;
  std::vector<const Finding*> orphaned;
  for (const Finding& note : run.notes) {
    if (StandsUnderTable(run, note)) (note.where.empty() ? left : orphaned).push_back(&note);
  }
  AppendList("left at the end:", std::move(left), page);
  AppendList("never released, died with their context:", std::move(orphaned), page);
}

void AppendNotReached(const Run& run, Page* page) {
  if (!run.coverage || run.coverage->not_reached.empty()) return;
  std::map<std::string_view, std::vector<const NotReached*>> reasons;
  for (const NotReached& row : run.coverage->not_reached) reasons[Words(row)].push_back(&row);
  page->Line("");
  page->Line("not reached:");
  for (const auto& [why, rows] : reasons) {
    page->Line("  {}: {}", page->Paint(kBold, ForTerminal(why)), Plural(rows.size(), "way"));
    for (std::size_t i = 0; i < std::min(rows.size(), kShownNotes); ++i) {
      const NotReached& row = *rows[i];
      const std::string origin = DescribeOrigin(row.stack);
      page->Line("    {}={},{}{}{}{}", ForTerminal(row.call), ForTerminal(row.code), ForTerminal(row.how),
                 row.phase.empty() ? "" : " in " + ForTerminal(row.phase), row.unwinding ? " while unwinding" : "",
                 origin.empty() ? "" : ", at " + ForTerminal(origin));
    }
    if (rows.size() > kShownNotes) page->Line("    … {} more, see --format json", rows.size() - kShownNotes);
  }
}

void AppendNotes(const Run& run, Page* page) {
  std::map<std::string_view, Group> rules;
  for (const Finding& note : run.notes) {
    if (!StandsUnderTable(run, note)) rules[words::Name(note.rule)].push_back(&note);
  }
  if (rules.empty()) return;
  std::string summary;
  for (const auto& [rule, notes] : rules) {
    std::uint64_t trials = 0;
    for (const Finding* const note : notes) trials += note->trials;
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", trials, ForTerminal(rule));
  }
  page->Line("");
  page->Line("notes: {}", summary);
  for (const auto& [rule, notes] : rules) {
    const std::string& title = notes.front()->title;
    page->Line("  {}{}{}", page->Paint(kBold, ForTerminal(rule)), title.empty() ? "" : ": ", ForTerminal(title));
    for (std::size_t i = 0; i < std::min(notes.size(), kShownNotes); ++i) AppendNote(*notes[i], page);
    if (notes.size() > kShownNotes) page->Line("    … {} more", notes.size() - kShownNotes);
  }
}

namespace {

constexpr std::size_t kMoreCalls = 5;     // further failing calls of one defect
constexpr std::size_t kMoreMembers = 10;  // further things that one defect loses

void AppendBlame(const Run& run, const Defect& defect, Page* page) {
  const std::string blame = BlameOf(run, defect);
  if (blame.empty()) return;
  page->Line("     {}", page->Paint(kBold, ForTerminal(blame)));
  if (defect.released.call.empty()) return;
  const bool is_change = words::SortOf(RootOf(run, defect).rule) == words::RuleSort::Changed;
  page->Line("     without the fault: {}{}", is_change ? "put back by " : "", Place(defect.released.call, defect.released.stack));
}

std::string FaultsOf(const Finding& finding) {
  std::string text = finding.fault ? finding.fault->text : "";
  for (const Fault& fault : finding.then) text += " " + fault.text;
  return text;
}

void AppendOtherCall(const Finding& finding, std::string_view indent, Page* page) {
  std::string line = "also " + Failing(finding, *page);
  if (!finding.fault->stack.empty()) line += " at " + ForTerminal(DescribeOrigin(finding.fault->stack));
  page->Line("{}{}", indent, line);
}

void AppendOtherCalls(const Run& run, const Member& member, Page* page) {
  const std::size_t end = std::min(member.findings.size(), kMoreCalls + 1);
  for (std::size_t i = 1; i < end; ++i) {
    if (run.findings[member.findings[i]].fault) AppendOtherCall(run.findings[member.findings[i]], "     ", page);
  }
  if (end < member.findings.size()) page->Line("     … and {} more failing calls, listed by --findings", member.findings.size() - end);
}

void AppendMembers(const Run& run, const Defect& defect, Page* page) {
  std::set<std::string> named;  // calls whose failure the reader knows of by now
  for (const std::size_t finding : defect.members.front().findings) named.insert(FaultsOf(run.findings[finding]));
  const std::size_t end = std::min(defect.members.size(), kMoreMembers + 1);
  for (std::size_t i = 1; i < end; ++i) {
    const Member& member = defect.members[i];
    const Finding& finding = run.findings[member.findings.front()];
    std::string line = words::IsLoss(finding.rule) ? "with it" : "with it " + std::string(words::Name(finding.rule));
    if (!finding.kind.empty()) line += fmt::format(" {} {}", member.count, ForTerminal(finding.kind));
    if (member.bytes != 0) line += fmt::format(", {} bytes", member.bytes);
    const bool seen = finding.acquired.call.empty() && !finding.where.empty();
    const std::string place = seen ? Place(finding.where, finding.where_stack) : Place(finding.acquired.call, finding.acquired.stack);
    if (!place.empty()) line += (seen ? ", seen at " : ", acquired by ") + place;
    if (!finding.detail.empty()) line += ": " + ForTerminal(finding.detail);
    page->Line("     {}", line);
    std::size_t more = 0;
    for (const std::size_t index : member.findings) {
      const Finding& one = run.findings[index];
      if (one.fault && named.insert(FaultsOf(one)).second && ++more <= kMoreCalls) AppendOtherCall(one, "       ", page);
    }
    if (more > kMoreCalls) page->Line("       … and {} more failing calls, listed by --findings", more - kMoreCalls);
  }
  if (end < defect.members.size()) page->Line("     … and {} more places, listed by --findings", defect.members.size() - end);
}

// Two lines each: what is accepted, and until when.
void AppendSuppressed(const Run& run, Page* page) {
  const std::string count = SuppressedCount(run);
  if (count.empty()) return;
  page->Line("");
  page->Line("{}:", page->Paint(kYellow, count));
  for (const Defect& defect : run.defects) {
    if (!IsSuppressed(defect)) continue;
    const Finding& root = RootOf(run, defect);
    const std::string amount = AmountOf(run, defect);
    const std::string place = Place(root.acquired.call, root.acquired.stack);
    page->Line("  {}{}{}", RulesOf(run, defect), amount.empty() ? "" : ": " + ForTerminal(amount),
               place.empty() ? "" : ", acquired by " + place);
    page->Line("     {}", ForTerminal(SuppressionOf(defect)));
  }
}

}  // namespace

void AppendDefects(const Run& run, Page* page) {
  std::size_t number = 0;
  for (const Defect& defect : run.defects) {
    if (IsSuppressed(defect)) continue;
    const Finding& root = RootOf(run, defect);
    std::string what = ForTerminal(AmountOf(run, defect));
    if (defect.trials > 1) what += fmt::format("{}in {} trials", what.empty() ? "" : ", ", defect.trials);
    page->Line("");
    page->Line("{:>3}. {}{}{}", ++number, page->Paint(kRed, RulesOf(run, defect)), what.empty() ? "" : ": ", what);
    if (!root.title.empty())
      page->Line("     {}", page->Paint(kDim, ForTerminal(root.title + (root.detail.empty() ? "" : ": " + root.detail))));
    AppendBlame(run, defect, page);
    AppendPlaces(root, page);
    AppendFault(root, page);
    AppendOtherCalls(run, defect.members.front(), page);
    AppendMembers(run, defect, page);
    if (defect.suppressed) page->Line("     {}", ForTerminal(SuppressionOf(defect)));
    if (!root.reproduce.empty()) page->Line("     reproduce {}", ForTerminal(root.reproduce));
    if (!defect.fingerprint.empty()) page->Line("     {}", page->Paint(kDim, "fingerprint " + ForTerminal(defect.fingerprint)));
  }
  AppendSuppressed(run, page);
}

}  // namespace cuaudit::report
