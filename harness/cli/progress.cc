// SPDX-License-Identifier: MIT
#include "harness/cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include "harness/ledger/rules.h"
#include "reports/escape.h"
#include "reports/text_writer.h"

namespace cuaudit::harness {

std::string ProgressBar(std::size_t done, std::size_t total) {
  constexpr std::size_t kWidth = 32;
  const std::size_t filled = total == 0 ? kWidth : kWidth * done / total;
  const std::string all = std::to_string(total);
  return fmt::format("[{:#<{}}{: <{}}] {:>{}}/{}", "", filled, "", kWidth - filled, done, all.size(), all);
}

std::string FirstFound(const TrialResult& trial, std::size_t done, std::size_t total) {
  const TrialFindingText& found = trial.findings.front();
  std::string line = fmt::format("first found, in trial {} of {} so far: {}", done, total, Name(found.rule));
  if (!KindName(found).empty()) line += fmt::format(" of {} {}", found.count, KindName(found));
  const bool acquired = !found.acquired->call.empty();
  const report::Acquired& place = acquired ? *found.acquired : *found.where;
  if (!place.call.empty()) line += (acquired ? ", acquired by " : ", seen at ") + place.call;
  const std::string origin = report::DescribeOrigin(place.stack);
  if (!origin.empty()) line += " at " + origin;
  for (std::size_t i = 0; i < trial.faults.size(); ++i) line += (i == 0 ? ", when " : " and then ") + trial.faults[i];
  return report::ForTerminal(line);
}

Progress::Progress() : Progress(stderr, isatty(STDERR_FILENO) != 0, Clock::now()) {}

void Progress::Show(std::size_t done, std::size_t total, Clock::time_point now) {
  if (terminal_) {
    std::fprintf(to_, "\rcuaudit: %s", ProgressBar(done, total).c_str());
    shown_ = true;
  } else if (now - last_ >= kPause) {
    std::fprintf(to_, "cuaudit: %zu of %zu trials so far\n", done, total);
    last_ = now;
  }
}

void Progress::Clear() {
  if (!shown_) return;
  std::fprintf(to_, "\r\033[K");
  shown_ = false;
}

}  // namespace cuaudit::harness
