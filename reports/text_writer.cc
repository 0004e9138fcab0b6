// SPDX-License-Identifier: MIT
#include "reports/text_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "reports/escape.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kShownFrames = 6;
constexpr std::string_view kRed = "\x1b[1;31m";
constexpr std::string_view kGreen = "\x1b[1;32m";
constexpr std::string_view kYellow = "\x1b[1;33m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kReset = "\x1b[0m";

struct Page {
  fmt::memory_buffer text;
  bool colour = false;

  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text.push_back('\n');
  }
  std::string Paint(std::string_view paint, std::string_view what) const {
    return colour ? fmt::format("{}{}{}", paint, what, kReset) : std::string(what);
  }
};

std::string Plural(std::uint64_t count, std::string_view word) { return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s"); }

std::string Number(double value) {
  const std::string text = fmt::format("{:+.2f}", value);
  return text.ends_with(".00") ? text.substr(0, text.size() - 3) : text;
}

std::string Counts(const std::map<std::string, std::uint64_t>& counts) {
  std::string line;
  for (const auto& [name, count] : counts) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count, ForTerminal(name));
  return line;
}

std::string_view OutcomePaint(std::string_view outcome) {
  if (outcome == "clean") return kGreen;
  return outcome == "findings" ? kRed : kYellow;
}

void AppendHeadline(const Run& run, Page* page) {
  std::string outcome = run.outcome;
  std::replace(outcome.begin(), outcome.end(), '_', ' ');
  if (run.outcome == "findings") outcome = Plural(run.findings.size(), "finding");
  const std::string_view on = run.driver.kind == "sim"    ? " on the simulated driver"
                              : run.driver.kind == "real" ? " on the real driver"
                                                          : "";
  page->Line("cuaudit {}{}: {}", run.mode, on, page->Paint(OutcomePaint(run.outcome), ForTerminal(outcome)));
  if (!run.message.empty()) page->Line("  {}", ForTerminal(run.message));
  if (!run.command.empty()) page->Line("  command  {}", ForTerminal(ForShell(run.command)));
  const Driver& driver = run.driver;
  std::string line = driver.kind == "sim" ? "simulated" : driver.kind;
  if (line.empty() || line == "none") line = "none was reached";
  if (!driver.version.empty()) line += ", CUDA " + driver.version;
  if (!driver.device.empty()) line += ", " + driver.device;
  if (!driver.path.empty()) line += ", " + driver.path;
  page->Line("  driver   {}", ForTerminal(line));
  if (!run.scope.empty()) page->Line("  scope    {}", ForTerminal(run.scope));

  const Totals& totals = run.totals;
  line = fmt::format("{} at {}", Plural(totals.calls, "driver call"), Plural(totals.sites, "site"));
  if (totals.trials != 0) line += fmt::format(", {}, {} fired", Plural(totals.trials, "trial"), totals.fired);
  page->Line("  totals   {}", line);
  if (!totals.verdicts.empty()) page->Line("  verdicts {}", Counts(totals.verdicts));
  if (!totals.skipped.empty()) page->Line("  skipped  {}", Counts(totals.skipped));
}

void AppendStack(const std::vector<Frame>& stack, Page* page) {
  for (const Frame& frame : ShownFrames(stack)) page->Line("       {}", ForTerminal(Describe(frame)));
}

void AppendFinding(std::size_t number, const Finding& finding, Page* page) {
  std::string what = page->Paint(kRed, ForTerminal(finding.rule));
  if (!finding.kind.empty()) what += fmt::format(": {} {}", finding.count, ForTerminal(finding.kind));
  if (finding.bytes != 0) what += fmt::format(", {} bytes", finding.bytes);
  if (finding.trials > 1) what += fmt::format(", in {} trials", finding.trials);
  page->Line("");
  page->Line("{:>3}. {}", number, what);
  if (!finding.title.empty()) page->Line("     {}", page->Paint(kDim, ForTerminal(finding.title)));
  if (!finding.acquired.call.empty() || !finding.acquired.stack.empty()) {
    page->Line("     acquired by {}", page->Paint(kBold, ForTerminal(finding.acquired.call)));
    AppendStack(finding.acquired.stack, page);
  }
  if (!finding.where.empty() || !finding.where_stack.empty()) {
    page->Line("     seen at {}", page->Paint(kBold, ForTerminal(finding.where)));
    AppendStack(finding.where_stack, page);
  }
  if (finding.fault) {
    page->Line("     lost when {} failed", page->Paint(kBold, ForTerminal(finding.fault->text)));
    AppendStack(finding.fault->stack, page);
  }
  if (!finding.reproduce.empty()) page->Line("     reproduce {}", ForTerminal(finding.reproduce));
}

// Columns as wide as their widest cell; the first two are text, the others numbers.
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

void AppendCycles(const Run& run, Page* page) {
  if (run.cycle_counts.empty()) return;
  page->Line("");
  std::vector<std::string> head = {"kind", "acquired at"};
  for (const std::uint64_t count : run.cycle_counts) head.push_back(fmt::format("N={}", count));
  head.insert(head.end(), {"per cycle", "bytes per cycle"});
  std::vector<std::vector<std::string>> rows = {head};
  for (const CycleRow& row : run.cycle_rows) {
    std::string place = row.acquired.call;
    const std::vector<Frame> frames = ShownFrames(row.acquired.stack);
    if (!frames.empty()) place += " < " + Describe(frames.front());
    std::vector<std::string> cells = {ForTerminal(row.kind), ForTerminal(place)};
    for (std::size_t i = 0; i < run.cycle_counts.size(); ++i) cells.push_back(i < row.live.size() ? std::to_string(row.live[i]) : "-");
    cells.insert(cells.end(), {Number(row.per_cycle), std::to_string(row.bytes_per_cycle)});
    rows.push_back(cells);
  }
  AppendTable(rows, 2, page);
  if (run.cycle_rows.empty()) page->Line("  nothing was alive at exit");
  std::string growth;
  for (const auto& [kind, count] : run.per_cycle)
    growth += fmt::format("{}{} {}", growth.empty() ? "" : ", ", ForTerminal(kind), Number(count));
  page->Line("  growth per cycle: {}", growth.empty() ? "none" : growth);
}

void AppendLive(const Run& run, Page* page) {
  if (run.live.empty()) return;
  page->Line("");
  std::vector<std::vector<std::string>> rows = {{"kind", "acquired", "released", "live", "bytes"}};
  for (const LiveRow& row : run.live) {
    rows.push_back({ForTerminal(row.kind), std::to_string(row.acquired), std::to_string(row.released), std::to_string(row.live),
                    std::to_string(row.bytes)});
  }
  AppendTable(rows, 1, page);
}

}  // namespace

std::string Describe(const Frame& frame) {
  if (frame.function.empty()) return fmt::format("{}+{:#x}", frame.module.empty() ? "?" : frame.module, frame.offset);
  if (frame.file.empty()) return fmt::format("{} ({})", frame.function, frame.module);
  return frame.line == 0 ? fmt::format("{} {}", frame.function, frame.file)
                         : fmt::format("{} {}:{}", frame.function, frame.file, frame.line);
}

std::vector<Frame> ShownFrames(const std::vector<Frame>& stack) {
  std::vector<Frame> shown;
  std::copy_if(stack.begin(), stack.end(), std::back_inserter(shown), [](const Frame& frame) { return !frame.file.empty(); });
  if (shown.empty()) shown = stack;
  if (shown.size() > kShownFrames) shown.resize(kShownFrames);
  return shown;
}

bool WriteText(const Run& run, std::ostream& out, bool colour) {
  Page page;
  page.colour = colour;
  AppendHeadline(run, &page);
  AppendCycles(run, &page);
  AppendLive(run, &page);
  for (std::size_t i = 0; i < run.findings.size(); ++i) AppendFinding(i + 1, run.findings[i], &page);
  if (!run.notes.empty()) {
    std::map<std::string, std::uint64_t> notes;
    for (const Finding& note : run.notes) notes[note.rule] += note.trials;
    page.Line("");
    page.Line("notes: {}", Counts(notes));
  }
  out.write(page.text.data(), static_cast<std::streamsize>(page.text.size()));
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
