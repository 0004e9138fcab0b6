// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/message.h"
#include "reports/text_findings.h"
#include "reports/text_page.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

std::string Number(double value) {
  const std::string text = fmt::format("{:+.2f}", value);
  return text.ends_with(".00") ? text.substr(0, text.size() - 3) : text;
}

std::string CountsText(const InWords& counts) {
  std::string line;
  for (const auto& [name, count] : counts) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count, ForTerminal(name));
  return line;
}

// Number of trials that exited right after the fault. A trial with several notes counts once: by its verdict, or, when it has another
// verdict, by the largest of its notes.
std::uint64_t TrialsAbandoned(const Run& run) {
  const auto verdict = run.totals.verdicts.find(Verdict::AbandonedAtExit);
  std::uint64_t trials = verdict == run.totals.verdicts.end() ? 0 : verdict->second;
  for (const Finding& note : run.notes) {
    if (note.rule == Rule::AbandonedAtExit || note.rule == Rule::AbandonedInInit) trials = std::max(trials, note.trials);
  }
  return trials;
}

struct Painted {
  std::string text;
  std::string_view paint;
};

Painted OutcomeOf(const Run& run) {
  const std::string found = DefectCount(run);
  if (run.outcome == Outcome::Findings) return {found, kRed};
  if (run.outcome == Outcome::Left) return {"left: " + Plural(ObjectsLeft(run), "object") + ", " + found, kRed};
  if (run.outcome == Outcome::Interrupted) return {Explanation(run) + (run.findings.empty() ? "" : "; " + found), kYellow};
  if (run.outcome == Outcome::Clean) {
    const std::uint64_t left = LeftAtExit(run, Of::Driver);
    const std::uint64_t left_of_host = LeftAtExit(run, Of::Host);  // every program leaves some
    const std::string shown = HostNotes(run);
    const std::string suppressed = SuppressedCount(run);
    const std::string notes = (suppressed.empty() ? "" : "; " + suppressed) + (shown.empty() ? "" : "; " + shown);
    const std::string host = (left_of_host == 0 ? "" : ", " + Plural(left_of_host, "host resource") + " kept until the end") + notes;
    const std::uint64_t orphaned = OrphanedBeforeExit(run);
    std::string text = "no rule broken";
    if (left != 0) text += ", " + Plural(left, "object") + " left";
    if (orphaned != 0) text += ", " + Plural(orphaned, "object") + " orphaned";
    if (left != 0 || orphaned != 0) return {text + host, kYellow};
    if (const std::uint64_t trials = TrialsAbandoned(run))
      return {CleanInWords(run) + ", " + Plural(trials, "trial") + " abandoned at exit" + notes, kYellow};
    return {CleanInWords(run) + host, kGreen};
  }
  Painted outcome{std::string(OutcomeName(run)), kYellow};
  std::replace(outcome.text.begin(), outcome.text.end(), '_', ' ');
  return outcome;
}

// "mutex, thread; not host_heap (--host looks at it, too)"
std::string Describe(const Host& host) {
  std::string text;
  for (const std::string& probe : host.probes) text += (text.empty() ? "" : ", ") + probe;
  std::map<std::string, std::string> reasons;
  for (const auto& [probe, why] : host.left_out) {
    std::string& probes = reasons[words::Words(why)];
    probes += (probes.empty() ? "" : ", ") + probe;
  }
  for (const auto& [why, probes] : reasons) text += fmt::format("{}not {} ({})", text.empty() ? "" : "; ", probes, why);
  return text;
}

void AppendHeadline(const Run& run, Page* page) {
  const Painted outcome = OutcomeOf(run);
  const std::string on = run.driver.kind == DriverKind::None ? "" : fmt::format(" on the {} driver", DriverInWords(run.driver.kind));
  page->Line("cuaudit {}{}: {}", Name(run.mode), on, page->Paint(outcome.paint, ForTerminal(outcome.text)));
  const std::string why = Explanation(run);
  const bool in_headline = run.outcome == Outcome::Interrupted || why == CleanInWords(run);
  if (!why.empty() && !in_headline) page->Line("  {}", ForTerminal(why));
  if (!run.command.empty()) page->Line("  command  {}", ForTerminal(ForShell(run.command)));
  for (const Replayed& fault : run.faults) {
    page->Line("  fault    {}{}", ForTerminal(fault.text),
               fault.code_chosen ? " (given without an error: this is the likeliest documented one)" : "");
  }
  const Driver& driver = run.driver;
  std::string line(driver.kind == DriverKind::None ? "none was reached" : DriverInWords(driver.kind));
  if (!driver.version.empty()) line += ", CUDA " + driver.version;
  if (!driver.device.empty()) line += ", " + driver.device;
  if (!driver.path.empty()) line += ", " + driver.path;
  page->Line("  driver   {}", ForTerminal(line));
  if (!driver.runtime.empty()) page->Line("  runtime  {}", ForTerminal(driver.runtime));
  if (!driver.world.empty()) page->Line("  world    {}", ForTerminal(driver.world));
  if (driver.kernels) page->Line("  kernels  {}", Describe(*driver.kernels));
  if (!run.scope.empty()) page->Line("  scope    {}", ForTerminal(run.scope));

  if (const std::string host = Describe(run.host); !host.empty()) page->Line("  host     {}", ForTerminal(host));
}

void AppendTotals(const Run& run, Page* page) {
  const Totals& totals = run.totals;
  std::string line = fmt::format("{} at {}", Plural(totals.calls, "driver call"), Plural(totals.sites, "site"));
  if (totals.trials != 0) line += fmt::format(", {}, {} fired", Plural(totals.trials, "trial"), totals.fired);
  page->Line("  totals   {}", line);
  if (!totals.verdicts.empty()) page->Line("  verdicts {}", CountsText(Words(totals.verdicts)));
  if (!totals.isolation.empty()) page->Line("  trials   {}", CountsText(Words(totals.isolation)));
  if (totals.forced != 0) {
    page->Line("  progress forced {}: work was queued that no driver call waited for",
               totals.forced == 1 ? "once" : fmt::format("{} times", totals.forced));
  }
  if (!totals.pruned.empty()) page->Line("  pruned   {}", CountsText(Words(totals.pruned)));
  if (run.coverage) page->Line("  coverage {}", Describe(*run.coverage));
  if (totals.recovered != 0) page->Line("  recovery checked after {}", Plural(totals.recovered, "trial"));
  if (totals.shrinking != 0) page->Line("  shrink   {} to find the fewest faults", Plural(totals.shrinking, "run"));
}

void AppendSkipped(const InWords& skipped, Page* page) {
  if (!skipped.empty()) page->Line("  skipped  {}", CountsText(skipped));
}

// Writes a table with columns as wide as their widest cell. The first `text_columns` are aligned left, the others right.
void AppendTable(const std::vector<std::vector<std::string>>& rows, std::size_t text_columns, Page* page) {
  std::vector<std::size_t> width(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      if (i != 0) line += "  ";
      line += i < text_columns ? fmt::format("{:<{}}", rows[r][i], width[i]) : fmt::format("{:>{}}", rows[r][i], width[i]);
    }
    page->Line("  {}", r == 0 ? page->Paint(kBold, line) : line);
  }
}

// "no growth; would have seen >= 32 bytes a cycle"
std::string Certificate(const Meter& row) {
  if (row.grows) return fmt::format("grows by {} bytes a cycle", Number(row.per_cycle));
  return fmt::format("no growth; would have seen >= {} bytes a cycle", row.detectable);
}

void AppendMeters(const Run& run, Page* page) {
  if (!run.meters) return;
  const Meters& meters = *run.meters;
  for (const Meter& row : meters.rows) {
    page->Line("  {}: {} ({} {}, noise {} bytes; a lifecycle that does nothing, {} cycles: {} false alarms in {} windows{})",
               ForTerminal(row.name), Certificate(row), row.cycles, meters.of_runs ? "cycles over 10 processes" : "cycles", row.noise,
               row.control_cycles, row.false_alarms, row.windows,
               row.drift == 0 ? "" : fmt::format(", {} bytes gained a block", row.drift));
  }
  for (const auto& [name, why] : meters.absent)
    page->Line("  {}: not judged: {}", name == kAllMeters ? "memory meters" : ForTerminal(name), ForTerminal(words::Words(why)));
}

void AppendCycles(const Run& run, Page* page) {
  if (run.cycle_counts.empty()) return;
  page->Line("");
  std::vector<std::string> head = {"kind", "acquired at"};
  for (const std::uint64_t count : run.cycle_counts) head.push_back(fmt::format("N={}", count));
  head.insert(head.end(), {"per cycle", "bytes per cycle"});
  std::vector<std::vector<std::string>> rows = {head};
  for (const CycleRow& row : run.cycle_rows) {
    std::string place = row.acquired.call;
    const std::string origin = DescribeOrigin(row.acquired.stack);
    if (!origin.empty()) place += " < " + origin;
    std::vector<std::string> cells = {ForTerminal(row.kind), ForTerminal(place)};
    for (std::size_t i = 0; i < run.cycle_counts.size(); ++i) cells.push_back(i < row.live.size() ? std::to_string(row.live[i]) : "-");
    const bool stops = row.course.trend == Trend::Bounded;
    cells.insert(cells.end(), {stops ? Number(0) : Number(row.per_cycle), std::to_string(stops ? 0 : row.bytes_per_cycle)});
    rows.push_back(cells);
  }
  AppendTable(rows, 2, page);
  if (run.cycle_rows.empty()) page->Line("  nothing was alive at exit");
  std::string growth;
  for (const auto& [kind, count] : run.per_cycle)
    growth += fmt::format("{}{} {}", growth.empty() ? "" : ", ", ForTerminal(kind), Number(count));
  if (growth.empty()) growth = fmt::format("none; {} do not show what is lost more rarely", Plural(run.cycle_counts.back(), "cycle"));
  page->Line("  growth per cycle: {}", growth);
  AppendMeters(run, page);
}

void AppendLive(const Run& run, Page* page) {
  if (run.live.empty()) return;
  page->Line("");
  const bool orphans = OrphanedBeforeExit(run) != 0;
  std::vector<std::vector<std::string>> rows = {{"kind", "acquired", "released", "live", "bytes"}};
  if (orphans) rows[0].insert(rows[0].begin() + 3, "orphaned");
  for (const LiveRow& row : run.live) {
    rows.push_back({ForTerminal(row.kind), std::to_string(row.acquired), std::to_string(row.released), std::to_string(row.live),
                    std::to_string(row.bytes)});
    if (orphans) rows.back().insert(rows.back().begin() + 3, std::to_string(row.orphaned));
  }
  AppendTable(rows, 1, page);
}

}  // namespace

bool WriteText(const Run& run, std::ostream& out, const TextOptions& options) {
  Page page;
  page.colour = options.colour;
  AppendHeadline(run, &page);
  AppendTotals(run, &page);
  AppendSkipped(Words(run.totals.skipped), &page);
  AppendCycles(run, &page);
  AppendLive(run, &page);
  AppendLeftAtExit(run, &page);
  AppendDefects(run, &page);
  if (options.findings && !run.findings.empty()) {
    page.Line("");
    page.Line("{}:", Plural(run.findings.size(), "finding"));
    AppendFindings(GroupByPlace(run.findings), &page);
  }
  AppendNotReached(run, &page);
  AppendNotes(run, &page);
  out << page.text;
  out.flush();
  return out.good();
}

std::string LifecycleText(const Run& run, const LifecycleAudit& audit) {
  Page page;
  const std::string says = run.outcome == Outcome::Findings ? DefectCount(run) : audit.says;
  const char* const proves_nothing = run.outcome == Outcome::NotExercised ? "not exercised: " : !run.outcome ? "not run: " : "";
  page.Line("{}: {}{}", ForTerminal(audit.name), proves_nothing, ForTerminal(says));
  if (!audit.driver.empty()) page.Line("  driver   {}", ForTerminal(audit.driver));
  if (run.totals.trials != 0) AppendTotals(run, &page);
  AppendSkipped(audit.skipped, &page);
  for (const std::string& why : audit.unmetered) page.Line("  host     not metered: {}", ForTerminal(why));
  if (!audit.drift.empty()) page.Line("  drift    two fault-free runs differ: {}", ForTerminal(audit.drift));
  AppendDefects(run, &page);
  return page.text;
}

}  // namespace cuaudit::report
