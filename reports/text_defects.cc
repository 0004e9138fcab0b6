// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cstddef>
#include <string>

#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/text_findings.h"
#include "reports/text_writer.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kMoreCalls = 5;     // further failing calls of one defect
constexpr std::size_t kMoreMembers = 10;  // further things that one defect loses

void AppendBlame(const Run& run, const Defect& defect, Page* page) {
  const std::string blame = BlameOf(run, defect);
  if (blame.empty()) return;
  page->Line("     {}", page->Paint(kBold, ForTerminal(blame)));
  if (defect.released.call.empty()) return;
  page->Line("     without the fault: {}", Place(defect.released.call, defect.released.stack));
}

void AppendOtherCalls(const Run& run, const Member& member, Page* page) {
  const std::size_t end = std::min(member.findings.size(), kMoreCalls + 1);
  for (std::size_t i = 1; i < end; ++i) {
    const Finding& finding = run.findings[member.findings[i]];
    if (!finding.fault) continue;
    std::string line = "also " + Failing(finding, *page);
    if (!finding.fault->stack.empty()) line += " at " + ForTerminal(DescribeOrigin(finding.fault->stack));
    page->Line("     {}", line);
  }
  if (end < member.findings.size()) page->Line("     … and {} more failing calls, listed by --findings", member.findings.size() - end);
}

void AppendMembers(const Run& run, const Defect& defect, Page* page) {
  const std::size_t end = std::min(defect.members.size(), kMoreMembers + 1);
  for (std::size_t i = 1; i < end; ++i) {
    const Member& member = defect.members[i];
    const Finding& finding = run.findings[member.findings.front()];
    std::string line = WasLost(finding.rule) ? "with it" : "with it " + std::string(words::Name(finding.rule));
    if (!finding.kind.empty()) line += fmt::format(" {} {}", member.count, ForTerminal(finding.kind));
    if (member.bytes != 0) line += fmt::format(", {} bytes", member.bytes);
    const bool seen = finding.acquired.call.empty() && !finding.where.empty();
    const std::string place = seen ? Place(finding.where, finding.where_stack) : Place(finding.acquired.call, finding.acquired.stack);
    if (!place.empty()) line += (seen ? ", seen at " : ", acquired by ") + place;
    if (!finding.detail.empty()) line += ": " + ForTerminal(finding.detail);
    page->Line("     {}", line);
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
