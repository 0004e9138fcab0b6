// SPDX-License-Identifier: MIT
#include "harness/sweep/trial_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
  std::size_t line = 1;
  LogRows own;
  if (rows == nullptr) rows = &own;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n'), ++line) {
    const std::string place = name + ":" + std::to_string(line) + ": expected ";
    std::optional<TrialResult> trial = rows->Read(text.substr(0, end));
    if (!trial.has_value()) return Status(Exit::Usage, place + "one finished trial as a JSON object");
    const bool again = !seen.emplace(trial->index, trial->attempt).second;
    if (again || (!trial->stray && !seen.emplace(trial->index, 0).second)) return Status(Exit::Usage, place + "each trial once");
    content.trials.push_back(std::move(*trial));
    content.lines.push_back(line);
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
  if (fstat(log.file_.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return Status(Exit::Usage, path + ": expected a regular file");
  if (facts.st_size > kLargestLog) return Status(Exit::Usage, path + ": expected at most 16 GiB of finished trials");
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  Result<TrialLogContent> content = ParseTrialLog(*text, path, &log.rows_);
  if (!content.ok()) return content.status();
  if (content->whole_bytes != text->size() && ftruncate(log.file_.get(), static_cast<off_t>(content->whole_bytes)) != 0) {
    return Status(Exit::Failure, path + ": cannot cut off the unfinished line: " + SystemWords(errno));
  }
  for (std::size_t i = 0; i < content->trials.size(); ++i) {
    const std::size_t index = content->trials[i].index;
    log.logged_[index].push_back({std::move(content->trials[i]), content->lines[i]});
  }
  return log;
}

Status TrialLog::NotOfThePlan(const Logged& logged) const {
  const std::string place =
      logged.line == 0 ? "trial " + std::to_string(logged.trial.index) + " of the shards" : path_ + ":" + std::to_string(logged.line);
  return {Exit::Usage, place + ": expected a trial of the plan, with its number and its faults"};
}

void TrialLog::Add(std::vector<TrialResult> finished) {
  for (TrialResult& trial : finished) {
    const std::size_t index = trial.index;
    logged_[index].push_back({std::move(trial), 0});
  }
}

Result<std::vector<TrialResult>> TrialLog::Take(std::size_t index, const std::vector<std::string>& faults) {
  std::vector<TrialResult> trials;
  const auto found = logged_.find(index);
  if (found == logged_.end()) return trials;
  for (Logged& logged : found->second) {
    if (logged.trial.faults != faults) return NotOfThePlan(logged);
    trials.push_back(std::move(logged.trial));
  }
  logged_.erase(found);
  return trials;
}

Status TrialLog::CheckTaken() const { return logged_.empty() ? Status() : NotOfThePlan(logged_.begin()->second.front()); }

Status TrialLog::Append(const TrialResult& trial) { return WriteAll(file_.get(), rows_.Write(trial), path_); }

}  // namespace cuaudit::harness
