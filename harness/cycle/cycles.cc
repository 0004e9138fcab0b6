// SPDX-License-Identifier: MIT
#include "harness/cycle/cycles.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "harness/sweep/findings/aggregate.h"

namespace cuaudit::harness {
namespace {

constexpr std::string_view kCount = "{n}";

}  // namespace

Result<std::vector<std::uint64_t>> ParseCounts(std::string_view text) {
  const std::string whole(text);
  const auto wrong = [&] {
    return Status(Exit::Usage, OptionFlag{"--n"}, "'" + whole + "': expected at least two increasing counts from 1, such as 1,10");
  };
  std::vector<std::uint64_t> counts;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    std::uint64_t value = 0;
    const std::from_chars_result parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool number = parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
    if (!number || value == 0 || (!counts.empty() && value <= counts.back())) return wrong();
    counts.push_back(value);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  if (counts.size() < 2) return wrong();
  return counts;
}

bool TakesCount(std::span<const std::string> command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& word) { return word.find(kCount) != std::string::npos; });
}

std::vector<std::string> WithCount(std::span<const std::string> command, std::uint64_t count) {
  const std::string number = std::to_string(count);
  std::vector<std::string> words(command.begin(), command.end());
  for (std::string& word : words) {
    for (std::size_t at = word.find(kCount); at != std::string::npos; at = word.find(kCount, at + number.size())) {
      word.replace(at, kCount.size(), number);
    }
  }
  return words;
}

void ShowFirstAndLast(report::Run* run) {
  const auto ends = [](std::vector<std::uint64_t>* counts) { *counts = {counts->front(), counts->back()}; };
  ends(&run->cycle_counts);
  for (report::CycleRow& row : run->cycle_rows) ends(&row.live);
}

namespace {

class Cycles {
 public:
  Cycles(const Subject& subject, const WorkDir& dir, const CycleCounts& counts, CyclesProgress* progress)
      : subject_(subject), dir_(dir), counts_(counts), progress_(progress) {}

  // One run for each count that was given, and then more of them while something that grew may be a cache that fills.
  Status OfRuns() {
    progress_->planned = counts_.given.size();
    for (const std::uint64_t count : counts_.given) {
      Status seen = Run(count);
      if (!seen.ok()) return seen;
    }
    for (std::uint64_t next = NextCount(snapshots_, counts_.most); next != 0; next = NextCount(snapshots_, counts_.most)) {
      ++progress_->planned;
      Status seen = Run(next);
      if (progress_->interrupted != 0) return seen;
      if (seen.ok()) continue;
      stopped_ = next;
      --progress_->planned;
      break;
    }
    return {};
  }

  Status OfMarks() {
    progress_->planned = 1;
    if (progress_->told) progress_->told();
    Result<Observation> seen = RunOnce(subject_, dir_.Journal("cycles"), &progress_->interrupted);
    if (!seen.ok()) return seen.status();
    progress_->done = 1;
    snapshots_ = MarkedSnapshots(*seen, Moments::Spread, &sites_);
    if (snapshots_.size() < 2) {
      return {Exit::Usage, "expected {n} in the command, or a program that marks at least two cycles (cuaudit/mark.h): it marked " +
                               std::to_string(snapshots_.size())};
    }
    last_ = std::move(*seen);
    return {};
  }

  const std::vector<Snapshot>& snapshots() const { return snapshots_; }

  RunMeters Describe(report::Run* run) const {
    DescribeRun(*last_, run);
    AddLeftBehind(last_->ending, Detail::TheyWereEnded, run);
    if (stopped_ != 0) ++run->totals.skipped[{words::Reason::CyclesStopped, std::to_string(stopped_)}];
    return ReadMeters(*last_);
  }

 private:
  Status Run(std::uint64_t count) {
    if (progress_->told) progress_->told();
    Subject once = subject_;
    once.command = WithCount(subject_.command, count);
    const std::uint64_t asked = counts_.given.back();
    once.deadline_ms *= std::max<std::uint64_t>(1, (count + asked - 1) / asked);
    Result<Observation> seen = RunOnce(once, dir_.Journal("cycles-" + std::to_string(count)), &progress_->interrupted);
    if (!seen.ok()) return seen.status();
    const bool counts_host = (seen->flags() & faults::kHostStopped) == 0;
    if (count > asked && !counts_host) return {Exit::Environment, "the journal has no room for the host records of so many cycles"};
    ++progress_->done;
    snapshots_.push_back(TakeSnapshot(*seen, count, kAtExit, &sites_));
    last_ = std::move(*seen);
    return {};
  }

  const Subject& subject_;
  const WorkDir& dir_;
  const CycleCounts& counts_;
  CyclesProgress* progress_;
  SiteTexts sites_;
  std::vector<Snapshot> snapshots_;
  std::optional<Observation> last_;  // the run with the most cycles
  std::uint64_t stopped_ = 0;        // number of cycles that the program could not make
};

}  // namespace

Status RunCycles(const Subject& subject, const WorkDir& dir, const CycleCounts& counts, const CertificateOptions& certificate,
                 const std::string& reproduce, report::Run* run, CyclesProgress* progress) {
  run->mode = report::Mode::Cycles;
  const bool takes_count = TakesCount(subject.command);
  Cycles cycles(subject, dir, counts, progress);
  Status seen = takes_count ? cycles.OfRuns() : cycles.OfMarks();
  if (seen.ok() || cycles.snapshots().size() > 1) CompareSnapshots(cycles.snapshots(), reproduce, run);
  if (!seen.ok()) return seen;
  if (!takes_count) ShowFirstAndLast(run);
  Status certified = Certify(subject, dir, certificate, cycles.Describe(run), reproduce, run, &progress->interrupted);
  if (!certified.ok()) return certified;
  run->outcome = !run->findings.empty()   ? words::Outcome::Findings
                 : run->message.undecided ? words::Outcome::NotExercised
                                          : words::Outcome::Clean;
  return {};
}

}  // namespace cuaudit::harness
