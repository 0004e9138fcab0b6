// SPDX-License-Identifier: MIT
#include "harness/cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include "harness/ledger/rules.h"
#include "harness/process/files.h"
#include "reports/escape.h"
#include "reports/frames.h"

namespace cuaudit::harness {

std::string ProgressBar(std::size_t done, std::size_t total) {
  constexpr std::size_t kWidth = 32;
  const std::size_t filled = total == 0 ? kWidth : kWidth * done / total;
  const std::string all = std::to_string(total);
  return fmt::format("[{:#<{}}{: <{}}] {:>{}}/{}", "", filled, "", kWidth - filled, done, all.size(), all);
}

std::string FirstFound(const TrialResult& trial, std::size_t done, std::size_t total) {
  const TrialFindingText& found = trial.findings.front();
  const std::string where = done == 0 ? "in an earlier run" : fmt::format("in trial {} of {} so far", done, total);
  std::string line = fmt::format("first found, {}: {}", where, Name(found.rule));
  if (!KindName(found).empty()) line += fmt::format(" of {} {}", found.count, KindName(found));
  const bool acquired = !found.acquired->call.empty();
  const report::Acquired& place = acquired ? *found.acquired : *found.where;
  if (!place.call.empty()) line += (acquired ? ", acquired by " : ", seen at ") + place.call;
  const std::string origin = report::DescribeOrigin(place.stack);
  if (!origin.empty()) line += " at " + origin;
  for (std::size_t i = 0; i < trial.faults.size(); ++i) line += (i == 0 ? ", when " : " and then ") + trial.faults[i];
  return report::ForTerminal(line);
}

ProgressForm FormOf(const std::string& progress, bool terminal) {
  if (progress == "bar") return ProgressForm::Bar;
  if (progress == "plain") return ProgressForm::Plain;
  if (progress == "none") return ProgressForm::None;
  return terminal ? ProgressForm::Bar : ProgressForm::Lines;
}

std::string RoughTime(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds <= 2 * kMinute) return fmt::format("{:.0f} s", std::ceil(seconds));
  if (seconds <= 2 * kHour) return fmt::format("{:.0f} min", std::ceil(seconds / kMinute));
  return fmt::format("{:.0f} h", std::ceil(seconds / kHour));
}

Progress::Progress(const std::string& progress) : Progress(STDERR_FILENO, FormOf(progress, isatty(STDERR_FILENO) != 0), Clock::now()) {}

void Progress::Begin(const char* unit, const std::string& name, const std::string& after, Clock::time_point now) {
  after_ = report::ForTerminal(after);
  Rename(name);
  Count(unit, now);
}

void Progress::Count(const char* unit, Clock::time_point now) {
  Clear();
  unit_ = unit;
  counted_ = false;
  tenth_ = 0;
  begun_ = now;
}

void Progress::Rename(const std::string& name) { name_ = report::ForTerminal(name); }

std::string Progress::Rate(std::size_t done, std::size_t total, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  if (now - begun_ < kQuiet || done <= from_) return {};
  const double rate = static_cast<double>(done - from_) / seconds;
  return fmt::format(", {:.3g} a second, about {} left", rate, RoughTime(static_cast<double>(total - done) / rate));
}

bool Progress::Write(const std::string& text) const { return WriteInPassing(to_, text, 4); }

void Progress::Line(std::size_t done, std::size_t total) const {
  Write("cuaudit: " + Named(fmt::format("{} of {} {} so far\n", done, total, unit_)));
}

void Progress::Show(std::size_t done, std::size_t total, Clock::time_point now) {
  if (!counted_) from_ = done;
  counted_ = true;
  if (form_ == ProgressForm::Bar) {
    const std::string head = name_.empty() ? "" : name_ + " ";
    const std::string after = after_.empty() ? "" : ", " + after_;
    if (Write(fmt::format("\rcuaudit: {}{} {}{}{}\033[K", head, ProgressBar(done, total), unit_, Rate(done, total, now), after)))
      shown_ = true;
  } else if (form_ == ProgressForm::Lines && now - last_ >= kPause) {
    Line(done, total);
    last_ = now;
  } else if (form_ == ProgressForm::Plain && total != 0) {
    const std::size_t tenth = 10 * done / total;
    if (tenth != 0 && tenth != tenth_) Line(done, total);
    tenth_ = tenth;
  }
}

void Progress::Step(const std::string& name, std::size_t done, std::size_t total, Clock::time_point now) {
  if (done == 0) Begin("steps", name, {}, now);
  else Rename(name);
  if (form_ != ProgressForm::Plain) Show(done, total, now);
  else if (done == 0) Write("cuaudit: " + name_ + "\n");
}

void Progress::Clear() {
  if (shown_ && Write("\r\033[K")) shown_ = false;
}

std::string ShortName(const std::string& path) {
  constexpr std::size_t kLongest = 40;
  const std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  const std::string name = (file.has_filename() ? file : file.parent_path()).filename().string();
  if (name.size() <= kLongest) return name;
  constexpr unsigned kOfCharacter = 0xC0;  // these bits of a byte are 0x80 inside of a UTF-8 character
  constexpr std::size_t kMostInside = 3;
  std::size_t end = kLongest;
  while (end > kLongest - kMostInside && (static_cast<unsigned char>(name[end]) & kOfCharacter) == 0x80U) --end;
  return name.substr(0, end) + "…";
}

report::ReadSoFar ReadingOf(const std::string& path, Progress* progress) {
  return [progress, name = ShortName(path), of = std::string()](const char* unit, std::size_t done, std::size_t total) mutable {
    if (of != unit) progress->Begin(unit, name);
    of = unit;
    progress->Show(done, total);
  };
}

std::vector<report::LiveRow> LiveTable(const Ledger& ledger) {
  std::array<report::LiveRow, driver::kKindCount> rows;
  for (const Object& object : ledger.objects) {
    if (object.driver_owned || object.part_of_other || object.library_kept || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent)
      continue;
    report::LiveRow& row = rows[static_cast<std::size_t>(object.kind)];
    ++row.acquired;
    if (object.state == State::Released) {
      ++row.released;
    } else if (object.state == State::Orphaned) {
      ++row.orphaned;
    } else {
      ++row.live;
      row.bytes += object.bytes;
    }
  }
  std::vector<report::LiveRow> table;
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    if (rows[kind].acquired == 0) continue;
    rows[kind].kind = std::string(driver::Name(static_cast<driver::Kind>(kind)));
    table.push_back(std::move(rows[kind]));
  }
  return table;
}

}  // namespace cuaudit::harness
