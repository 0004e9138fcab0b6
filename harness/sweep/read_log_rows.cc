// SPDX-License-Identifier: MIT
// The reading half of LogRows.
#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "harness/sweep/log_rows.h"

namespace cuaudit::harness {
namespace {

constexpr int kDeepest = 16;  // levels of a row

using Json = nlohmann::ordered_json;

// Thrown for an unknown name, number or form: another version wrote the file.
struct MakesNoSense : std::exception {};

void Require(bool makes_sense) {
  if (!makes_sense) throw MakesNoSense();
}

template <typename E>
E ToEnumerator(const Json& json) {
  const std::optional<E> found = Named<E>(json.get<std::string>());
  Require(found.has_value());
  return *found;
}

void ReadResult(const Json& row, TrialResult* trial) {
  trial->verdict = ToEnumerator<Verdict>(row.at("verdict"));
  trial->missed = ToEnumerator<Missed>(row.at("missed"));
  trial->fired = row.at("fired").get<bool>();
  trial->unfired = row.at("unfired").get<std::vector<std::size_t>>();
  for (const std::size_t fault : trial->unfired) Require(fault < trial->faults.size());
  trial->isolation = ToEnumerator<Isolation>(row.at("isolation"));
  for (const Json& why : row.at("fallback")) trial->fallback.push_back({ToEnumerator<Reason>(why.at(0)), why.at(1).get<std::string>()});
  trial->ending.exit_status = row.at("exit_status").get<int>();
  trial->ending.signal = row.at("signal").get<int>();
  trial->ending.timed_out = row.at("timed_out").get<bool>();
  trial->ending.left_behind = row.at("left_behind").get<std::size_t>();
  trial->ending.survived = row.at("survived").get<std::size_t>();
  trial->benign = row.at("benign").get<std::vector<std::size_t>>();
  const Json& host = row.at("host_left_out");
  if (!host.get_ref<const std::string&>().empty()) trial->host_left_out = ToEnumerator<Reason>(host);
  const int said = row.at("said").get<int>();
  const int recovery = row.at("recovery").get<int>();
  Require(said >= 0 && said <= static_cast<int>(Said::Failure));
  Require(recovery >= 0 && recovery <= static_cast<int>(Recovery::OlderContext));
  trial->said = static_cast<Said>(said);
  trial->recovery = static_cast<Recovery>(recovery);
  for (const Json& why : row.at("skipped")) trial->skipped.push_back(ToEnumerator<Reason>(why));
  trial->later_keys.resize(row.at("keyed").get<std::size_t>() == 0 ? 0 : trial->faults.size() - 1);
}

}  // namespace

const Json& LogRows::Content(Table table, const Json& number) const {
  Require(number.is_number_unsigned());
  return contents_[table].at(number.get<std::size_t>());
}

std::uint64_t LogRows::StateAt(std::string_view states, std::size_t at) {
  std::uint64_t state = 0;
  for (std::size_t i = kStateDigits; i-- != 0;) {
    const std::size_t digit = kDigits.find(states.at(at * kStateDigits + i));
    Require(digit != std::string_view::npos);
    state = (state << 6U) + digit;
  }
  return state;
}

void LogRows::Define(const Json& rows) {
  for (const Json& row : rows) {
    const auto& name = row.at(0).get_ref<const std::string&>();
    const std::size_t table = kTables.find(name);
    Require(name.size() == 1 && table != std::string_view::npos && row.size() == 2);
    numbers_[table].try_emplace(Dump(row.at(1)), contents_[table].size());
    contents_[table].push_back(row.at(1));
  }
}

std::string LogRows::Fault(const Json& text, const Json& occurrence) const {
  std::string fault = Text(text);
  const std::size_t at = fault.find('*');
  Require(occurrence.is_number_unsigned() && (at == std::string::npos) == (occurrence.get<std::uint64_t>() == 0));
  if (at != std::string::npos) fault.replace(at, 1, std::to_string(occurrence.get<std::uint32_t>()));
  Require(fault.find('*') == std::string::npos);
  return fault;
}

report::Frame LogRows::Frame(const Json& number) const {
  const Json& row = Content(kFrame, number);
  report::Frame frame;
  frame.module = Text(row.at(0));
  frame.function = Text(row.at(1));
  frame.file = Text(row.at(2));
  frame.line = row.at(3).get<int>();
  frame.offset = row.at(4).get<std::uint64_t>();
  frame.start = row.at(5).get<std::uint64_t>();
  return frame;
}

PlaceText LogRows::Place(const Json& number) {
  const Json& row = Content(kPlace, number);
  read_.resize(contents_[kPlace].size());
  std::optional<PlaceText>& known = read_[number.get<std::size_t>()];
  if (known.has_value()) return *known;
  report::Acquired place;
  place.call = row.at(0).get<std::string>();
  for (const Json& frame : row.at(1)) place.stack.push_back(Frame(frame));
  const bool nowhere = place.call.empty() && place.stack.empty();
  known = nowhere ? PlaceText() : PlaceText(std::move(place));
  return *known;
}

TrialFindingText LogRows::Finding(const Json& number) {
  const Json& row = Content(kFinding, number);
  TrialFindingText finding;
  finding.rule = ToEnumerator<Rule>(row.at("rule"));
  finding.meter = row.at("meter").get<std::string>();
  const auto kind = row.at("kind").get<std::string>();
  if (finding.meter.empty()) finding.kind = driver::KindFromName(kind);
  Require(kind == KindName(finding));
  finding.count = row.at("count").get<std::uint64_t>();
  finding.bytes = row.at("bytes").get<std::uint64_t>();
  finding.acquired_key = row.at("acquired_key").get<std::uint64_t>();
  finding.where_key = row.at("where_key").get<std::uint64_t>();
  finding.other_key = row.at("other_key").get<std::uint64_t>();
  finding.acquired = Place(row.at("acquired"));
  finding.where = Place(row.at("where"));
  finding.other = Place(row.at("other"));
  finding.released = Place(row.at("released"));
  if (const Json& blame = row.at("blame"); !blame.is_null()) {
    const int because = blame.at(0).get<int>();
    Require(because >= 0 && because <= static_cast<int>(report::BlamedBecause::MadeTheCall));
    finding.blame = report::Blame{Frame(blame.at(1)), static_cast<report::BlamedBecause>(because)};
  }
  finding.detail = row.at("detail").get<std::string>();
  return finding;
}

std::vector<NextFault> LogRows::NextFaults(const Json& steps) const {
  std::vector<NextFault> faults;
  const Json& numbers = steps.at("steps");
  const auto& states = steps.at("states").get_ref<const std::string&>();
  Require(numbers.size() % 2 == 0 && states.size() == numbers.size() / 2 * kStateDigits);
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const Json& step = Content(kStep, numbers.at(i));
    NextFault next;
    next.site = step.at(0).get<std::uint64_t>();
    next.step = step.at(1).get<std::uint64_t>();
    next.phase = static_cast<faults::Phase>(step.at(2).get<unsigned>() % (static_cast<unsigned>(faults::Phase::Unwind) + 1));
    next.on_the_way_back = step.at(3).get<bool>();
    next.state = StateAt(states, i / 2);
    for (const Json& way : step.at(4)) {
      next.fault = Fault(way, numbers.at(i + 1));
      faults.push_back(next);
    }
  }
  return faults;
}

Unwinding LogRows::ReadWayBack(const Json& row) const {
  Unwinding unwinding;
  if (row.contains("shape")) unwinding.shape = Content(kShape, row.at("shape")).get<std::uint64_t>();
  if (row.contains("steps")) unwinding.faults = NextFaults(row);
  if (row.contains("left_out")) {
    for (const Json& one : row.at("left_out")) {
      for (NextFault& next : NextFaults(one.at(1))) unwinding.left_out.push_back({std::move(next), ToEnumerator<Reason>(one.at(0))});
    }
  }
  if (row.contains("pruned")) {
    for (const auto& [name, count] : row.at("pruned").items()) unwinding.pruned[ToEnumerator<Reason>(name)] = count.get<std::uint64_t>();
  }
  return unwinding;
}

TrialResult LogRows::ReadTrial(const Json& row) {
  TrialResult trial;
  if (row.contains("new")) Define(row.at("new"));
  trial.index = row.at("trial").get<std::size_t>();
  if (row.contains("attempt")) trial.attempt = row.at("attempt").get<int>();
  if (row.contains("stray")) trial.stray = row.at("stray").get<bool>();
  const Json& faults = row.at("faults");
  for (std::size_t i = 0; i < faults.size(); i += 2) trial.faults.push_back(Fault(faults.at(i), faults.at(i + 1)));
  Require(!trial.faults.empty());
  ReadResult(Content(kResult, row.at("as")), &trial);
  const Json& hits = row.at("at");
  Require(!hits.empty() && hits.size() <= trial.faults.size());
  for (std::size_t i = 0; i < hits.size(); ++i) {
    const Json& hit = Content(kHit, hits.at(i));
    const auto key = hit.at(0).get<std::uint64_t>();
    if (i == 0) {
      trial.fault_key = key;
      trial.fault_site = Place(hit.at(1));
    } else {
      if (i - 1 < trial.later_keys.size()) trial.later_keys[i - 1] = key;
      trial.later_sites.push_back(Place(hit.at(1)));
    }
  }
  if (row.contains("findings")) {
    for (const Json& number : row.at("findings")) trial.findings.push_back(Finding(number));
  }
  if (row.contains("notes")) {
    for (const Json& number : row.at("notes")) trial.notes.push_back(Finding(number));
  }
  if (row.contains("way_back")) trial.unwinding = ReadWayBack(row.at("way_back"));
  return trial;
}

std::optional<TrialResult> LogRows::Read(std::string_view line) {
  try {
    bool whole = true;  // false for fractions, which are never written, and for numbers too large for 64 bits
    const Json row = Json::parse(line, [&whole](int depth, Json::parse_event_t, const Json& part) {
      if (depth > kDeepest) throw std::invalid_argument("deeper than any row");  // copies of it would recurse
      whole = whole && !part.is_number_float();
      return true;
    });
    if (!whole) return std::nullopt;
    return ReadTrial(row);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace cuaudit::harness
