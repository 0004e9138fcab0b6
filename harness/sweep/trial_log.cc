// SPDX-License-Identifier: MIT
#include "harness/sweep/trial_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

namespace cuaudit::harness {
namespace {

constexpr off_t kLargestLog = off_t{1} << 34U;

}  // namespace

Result<TrialLogContent> ParseTrialLog(std::string_view text, const std::string& name, LogRows* rows) {
  TrialLogContent content;
  std::set<std::pair<std::size_t, int>> seen;  // trial and attempt; attempt 0 is the one that counts
  LogRows own;
  if (rows == nullptr) rows = &own;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string place = name + ":" + std::to_string(content.trials.size() + 1) + ": expected ";
    std::optional<TrialResult> trial = rows->Read(text.substr(0, end));
    if (!trial.has_value()) return Status(Exit::Usage, place + "one finished trial as a JSON object");
    const bool again = !seen.emplace(trial->index, trial->attempt).second;
    if (again || (!trial->stray && !seen.emplace(trial->index, 0).second)) return Status(Exit::Usage, place + "each trial once");
    content.trials.push_back(std::move(*trial));
    content.whole_bytes += end + 1;
    text.remove_prefix(end + 1);
  }
  return content;
}

Result<TrialLog> TrialLog::Open(const std::string& path) {
  TrialLog log;
  log.path_ = path;
  log.file_ = FileDescriptor(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log.file_.valid()) return Status(Exit::Usage, path + ": cannot open: " + SystemWords(errno));
  struct stat facts = {};
  if (fstat(log.file_.get(), &facts) != 0) return Status(Exit::Usage, path + ": cannot open: " + SystemWords(errno));
  if (facts.st_size > kLargestLog) return Status(Exit::Usage, path + ": expected at most 16 GiB of finished trials");
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  Result<TrialLogContent> content = ParseTrialLog(*text, path, &log.rows_);
  if (!content.ok()) return content.status();
  if (content->whole_bytes != text->size() && ftruncate(log.file_.get(), static_cast<off_t>(content->whole_bytes)) != 0) {
    return Status(Exit::Failure, path + ": cannot cut off the unfinished line: " + SystemWords(errno));
  }
  log.logged_.reserve(content->trials.size());
  for (std::size_t i = 0; i < content->trials.size(); ++i) log.logged_.push_back({std::move(content->trials[i]), i + 1});
  log.Sort();
  return log;
}

Status TrialLog::NotOfThePlan(const Logged& logged) const {
  const std::string place =
      logged.line == 0 ? "trial " + std::to_string(logged.trial.index) + " of the shards" : path_ + ":" + std::to_string(logged.line);
  return {Exit::Usage, place + ": expected a trial of the plan, with its number and its faults"};
}

void TrialLog::Add(std::vector<TrialResult> finished) {
  logged_.reserve(logged_.size() + finished.size());
  for (TrialResult& trial : finished) logged_.push_back({std::move(trial), 0});
  Sort();
}

void TrialLog::Sort() {
  const auto earlier = [](const Logged& a, const Logged& b) { return a.trial.index < b.trial.index; };
  if (!std::is_sorted(logged_.begin(), logged_.end(), earlier)) std::stable_sort(logged_.begin(), logged_.end(), earlier);
  next_ = 0;
  left_ = logged_.size();
}

Result<std::vector<TrialResult>> TrialLog::Take(std::size_t index, const std::vector<std::string>& faults) {
  std::vector<TrialResult> trials;
  if (next_ == logged_.size() || logged_[next_].trial.index != index) {
    const auto below = [](const Logged& one, std::size_t number) { return one.trial.index < number; };
    next_ = static_cast<std::size_t>(std::lower_bound(logged_.begin(), logged_.end(), index, below) - logged_.begin());
  }
  for (; next_ < logged_.size() && logged_[next_].trial.index == index; ++next_) {
    Logged& logged = logged_[next_];
    if (logged.taken) continue;
    if (logged.trial.faults != faults) return NotOfThePlan(logged);
    trials.push_back(std::move(logged.trial));
    logged.taken = true;
    --left_;
  }
  if (left_ == 0) {
    logged_ = {};
    next_ = 0;
  }
  return trials;
}

Status TrialLog::CheckTaken() const {
  const auto other = std::find_if(logged_.begin(), logged_.end(), [](const Logged& one) { return !one.taken; });
  return other == logged_.end() ? Status() : NotOfThePlan(*other);
}

Status TrialLog::Append(const TrialResult& trial) { return WriteAll(file_.get(), rows_.Write(trial), path_); }

}  // namespace cuaudit::harness
