// SPDX-License-Identifier: MIT
#include "harness/sweep/trial_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace cuaudit::harness {
namespace {

using Json = nlohmann::ordered_json;
using PlaceTexts = std::unordered_map<std::string, PlaceText>;  // by their text

// Paths and symbol names may hold any byte, so invalid UTF-8 is replaced.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json FromFrame(const report::Frame& frame) {
  return Json::array({frame.module, frame.function, frame.file, frame.line, frame.offset, frame.start});
}

Json FromSite(const report::Acquired& site) {
  Json frames = Json::array();
  for (const report::Frame& frame : site.stack) {
    frames.push_back(FromFrame(frame));
  }
  return Json{{"call", site.call}, {"stack", std::move(frames)}};
}

Json FromBlame(const std::optional<report::Blame>& blame) {
  if (!blame) return nullptr;
  return Json::array({static_cast<int>(blame->because), FromFrame(blame->function)});
}

Json FromFindings(const std::vector<TrialFindingText>& findings) {
  Json rows = Json::array();
  for (const TrialFindingText& finding : findings) {
    rows.push_back({{"rule", Name(finding.rule)},
                    {"kind", KindName(finding)},
                    {"count", finding.count},
                    {"bytes", finding.bytes},
                    {"acquired_key", finding.acquired_key},
                    {"where_key", finding.where_key},
                    {"other_key", finding.other_key},
                    {"acquired", FromSite(finding.acquired)},
                    {"where", FromSite(finding.where)},
                    {"other", FromSite(finding.other)},
                    {"released", FromSite(finding.released)},
                    {"blame", FromBlame(finding.blame)},
                    {"meter", finding.meter},
                    {"detail", finding.detail}});
  }
  return rows;
}

// Thrown for an unknown name: another version wrote the file.
struct NoSuchName {};

template <typename E>
E ToEnumerator(const Json& json) {
  const std::optional<E> found = Named<E>(json.get<std::string>());
  if (!found.has_value()) throw NoSuchName();
  return *found;
}

report::Frame ToFrame(const Json& row) {
  report::Frame frame;
  frame.module = row.at(0).get<std::string>();
  frame.function = row.at(1).get<std::string>();
  frame.file = row.at(2).get<std::string>();
  frame.line = row.at(3).get<int>();
  frame.offset = row.at(4).get<std::uint64_t>();
  frame.start = row.at(5).get<std::uint64_t>();
  return frame;
}

std::optional<report::Blame> ToBlame(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const int because = json.at(0).get<int>();
  if (because < 0 || because > static_cast<int>(report::BlamedBecause::MadeTheCall)) throw NoSuchName();
  return report::Blame{ToFrame(json.at(1)), static_cast<report::BlamedBecause>(because)};
}

// Trials that name the same place share one text.
PlaceText ToSite(const Json& json, PlaceTexts* places) {
  PlaceText& known = (*places)[Dump(json)];
  if (!known->call.empty()) return known;
  report::Acquired site;
  site.call = json.at("call").get<std::string>();
  for (const Json& row : json.at("stack")) site.stack.push_back(ToFrame(row));
  known = std::move(site);
  return known;
}

std::vector<TrialFindingText> ToFindings(const Json& json, PlaceTexts* places) {
  std::vector<TrialFindingText> findings;
  for (const Json& row : json) {
    TrialFindingText finding;
    finding.rule = ToEnumerator<Rule>(row.at("rule"));
    finding.meter = row.at("meter").get<std::string>();
    const auto kind = row.at("kind").get<std::string>();
    if (finding.meter.empty()) finding.kind = driver::KindFromName(kind);
    if (kind != KindName(finding)) throw NoSuchName();
    finding.count = row.at("count").get<std::uint64_t>();
    finding.bytes = row.at("bytes").get<std::uint64_t>();
    finding.acquired_key = row.at("acquired_key").get<std::uint64_t>();
    finding.where_key = row.at("where_key").get<std::uint64_t>();
    finding.other_key = row.at("other_key").get<std::uint64_t>();
    finding.acquired = ToSite(row.at("acquired"), places);
    finding.where = ToSite(row.at("where"), places);
    finding.other = ToSite(row.at("other"), places);
    finding.released = ToSite(row.at("released"), places);
    finding.blame = ToBlame(row.at("blame"));
    finding.detail = row.at("detail").get<std::string>();
    findings.push_back(std::move(finding));
  }
  return findings;
}

Json FromNext(const NextFault& next) {
  return Json::array({next.fault, next.site, next.state, static_cast<int>(next.phase), next.on_the_way_back});
}

NextFault ToNext(const Json& row) {
  NextFault next;
  next.fault = row.at(0).get<std::string>();
  next.site = row.at(1).get<std::uint64_t>();
  next.state = row.at(2).get<std::uint64_t>();
  next.phase = static_cast<faults::Phase>(row.at(3).get<unsigned>() % (static_cast<unsigned>(faults::Phase::Unwind) + 1));
  next.on_the_way_back = row.at(4).get<bool>();
  return next;
}

Json FromUnwinding(const Unwinding& unwinding) {
  Json rows = Json::array();
  for (const NextFault& next : unwinding.faults) rows.push_back(FromNext(next));
  Json left_out = Json::array();
  Json pruned = Json::object();
  for (const auto& [reason, count] : unwinding.pruned) pruned[std::string(Name(reason))] = count;
  for (const LeftOut& one : unwinding.left_out) left_out.push_back(Json::array({FromNext(one.fault), Name(one.why)}));
  return Json{{"faults", std::move(rows)}, {"left_out", std::move(left_out)}, {"pruned", std::move(pruned)}};
}

Unwinding ToUnwinding(const Json& json) {
  Unwinding unwinding;
  for (const Json& row : json.at("faults")) unwinding.faults.push_back(ToNext(row));
  for (const Json& row : json.at("left_out")) unwinding.left_out.push_back({ToNext(row.at(0)), ToEnumerator<Reason>(row.at(1))});
  for (const auto& [name, count] : json.at("pruned").items()) unwinding.pruned[ToEnumerator<Reason>(name)] = count.get<std::uint64_t>();
  return unwinding;
}

std::optional<TrialResult> ToTrial(const Json& json, PlaceTexts* places) {
  TrialResult trial;
  trial.index = json.at("trial").get<std::size_t>();
  trial.attempt = json.at("attempt").get<int>();
  trial.stray = json.at("stray").get<bool>();
  trial.isolation = ToEnumerator<Isolation>(json.at("isolation"));
  for (const Json& why : json.at("fallback")) trial.fallback.push_back({ToEnumerator<Reason>(why.at(0)), why.at(1).get<std::string>()});
  trial.faults = json.at("faults").get<std::vector<std::string>>();
  trial.missed = ToEnumerator<Missed>(json.at("missed"));
  trial.unfired = json.at("unfired").get<std::vector<std::size_t>>();
  if (std::any_of(trial.unfired.begin(), trial.unfired.end(), [&](std::size_t fault) { return fault >= trial.faults.size(); })) {
    return std::nullopt;
  }
  trial.verdict = ToEnumerator<Verdict>(json.at("verdict"));
  trial.fired = json.at("fired").get<bool>();
  trial.ending.exit_status = json.at("exit_status").get<int>();
  trial.ending.signal = json.at("signal").get<int>();
  trial.ending.timed_out = json.at("timed_out").get<bool>();
  trial.ending.left_behind = json.at("left_behind").get<std::size_t>();
  trial.ending.survived = json.at("survived").get<std::size_t>();
  trial.fault_key = json.at("fault_key").get<std::uint64_t>();
  trial.fault_site = ToSite(json.at("fault_site"), places);
  for (const Json& site : json.at("later_sites")) trial.later_sites.push_back(ToSite(site, places));
  trial.later_keys = json.at("later_keys").get<std::vector<std::uint64_t>>();
  trial.benign = json.at("benign").get<std::vector<std::size_t>>();
  if (const Json& why = json.at("host_left_out"); !why.get_ref<const std::string&>().empty())
    trial.host_left_out = ToEnumerator<Reason>(why);
  const int said = json.at("said").get<int>();
  const int recovery = json.at("recovery").get<int>();
  if (said < 0 || said > static_cast<int>(Said::Failure) || recovery < 0 || recovery > static_cast<int>(Recovery::OlderContext))
    return std::nullopt;
  trial.said = static_cast<Said>(said);
  trial.recovery = static_cast<Recovery>(recovery);
  trial.findings = ToFindings(json.at("findings"), places);
  trial.notes = ToFindings(json.at("notes"), places);
  for (const Json& why : json.at("skipped")) trial.skipped.push_back(ToEnumerator<Reason>(why));
  trial.unwinding = ToUnwinding(json.at("unwinding"));
  return trial;
}

}  // namespace

std::string FormatTrial(const TrialResult& trial) {
  Json later = Json::array();
  for (const PlaceText& site : trial.later_sites) later.push_back(FromSite(site));
  Json fallback = Json::array();
  for (const Because& why : trial.fallback) fallback.push_back(Json::array({Name(why.reason), why.of}));
  Json skipped = Json::array();
  for (const Reason why : trial.skipped) skipped.push_back(Name(why));
  const Json json = {{"trial", trial.index},
                     {"attempt", trial.attempt},
                     {"stray", trial.stray},
                     {"isolation", Name(trial.isolation)},
                     {"fallback", std::move(fallback)},
                     {"faults", trial.faults},
                     {"missed", Name(trial.missed)},
                     {"unfired", trial.unfired},
                     {"verdict", Name(trial.verdict)},
                     {"fired", trial.fired},
                     {"exit_status", trial.ending.exit_status},
                     {"signal", trial.ending.signal},
                     {"timed_out", trial.ending.timed_out},
                     {"left_behind", trial.ending.left_behind},
                     {"survived", trial.ending.survived},
                     {"fault_key", trial.fault_key},
                     {"fault_site", FromSite(trial.fault_site)},
                     {"later_sites", std::move(later)},
                     {"later_keys", trial.later_keys},
                     {"benign", trial.benign},
                     {"host_left_out", trial.host_left_out == Reason::None ? std::string_view() : Name(trial.host_left_out)},
                     {"said", static_cast<int>(trial.said)},
                     {"recovery", static_cast<int>(trial.recovery)},
                     {"findings", FromFindings(trial.findings)},
                     {"notes", FromFindings(trial.notes)},
                     {"skipped", std::move(skipped)},
                     {"unwinding", FromUnwinding(trial.unwinding)}};
  return Dump(json) + "\n";
}

Result<TrialLogContent> ParseTrialLog(std::string_view text, const std::string& name) {
  TrialLogContent content;
  std::set<std::pair<std::size_t, int>> seen;  // trial and attempt; attempt 0 is the one that counts
  std::size_t line = 1;
  PlaceTexts places;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n'), ++line) {
    const std::string place = name + ":" + std::to_string(line) + ": expected ";
    const Status no_trial(Exit::Usage, place + "one finished trial as a JSON object");
    try {
      bool whole = true;  // false for fractions, which are never written, and for numbers too large for 64 bits
      const Json json = Json::parse(text.substr(0, end), [&whole](int, Json::parse_event_t, const Json& part) {
        whole = whole && !part.is_number_float();
        return true;
      });
      std::optional<TrialResult> parsed = whole ? ToTrial(json, &places) : std::nullopt;
      if (!parsed.has_value()) return no_trial;
      TrialResult& trial = *parsed;
      const bool again = !seen.emplace(trial.index, trial.attempt).second;
      if (again || (!trial.stray && !seen.emplace(trial.index, 0).second)) return Status(Exit::Usage, place + "each trial once");
      content.trials.push_back(std::move(trial));
      content.lines.push_back(line);
    } catch (const Json::exception&) {
      return no_trial;
    } catch (const NoSuchName&) {
      return no_trial;
    }
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
  const Result<std::string> text = ReadFile(path);
  if (!text.ok()) return text.status();
  Result<TrialLogContent> content = ParseTrialLog(*text, path);
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

Status TrialLog::NotOfThePlan(std::size_t line) const {
  return {Exit::Usage, path_ + ":" + std::to_string(line) + ": expected a trial of the plan, with its number and its faults"};
}

Result<std::vector<TrialResult>> TrialLog::Take(std::size_t index, const std::vector<std::string>& faults) {
  std::vector<TrialResult> trials;
  const auto found = logged_.find(index);
  if (found == logged_.end()) return trials;
  for (Logged& logged : found->second) {
    if (logged.trial.faults != faults) return NotOfThePlan(logged.line);
    trials.push_back(std::move(logged.trial));
  }
  logged_.erase(found);
  return trials;
}

Status TrialLog::CheckTaken() const { return logged_.empty() ? Status() : NotOfThePlan(logged_.begin()->second.front().line); }

Status TrialLog::Append(const TrialResult& trial) { return WriteAll(file_.get(), FormatTrial(trial), path_); }

}  // namespace cuaudit::harness
