// SPDX-License-Identifier: MIT
// The reading half of LogRows.
#include <exception>
#include <stdexcept>

#include "faults/plan/fault.h"
#include "harness/sweep/log_rows.h"

namespace cuaudit::harness {
namespace {

constexpr int kDeepest = 16;  // levels of a row
constexpr int kMostAttempts = 1000;
constexpr std::uint64_t kMostOfAFinding = std::uint64_t{1} << 40U;  // of one finding
constexpr std::uint64_t kMostPruned = std::uint64_t{1} << 32U;      // of one way back
// A line of a hundred bytes may name texts, frames and faults of many kilobytes that stand in earlier lines, which is what tables are for.
// No sweep writes lines that stand for more than these.
constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20U;
constexpr std::uint64_t kMostFold = 256;

using Json = nlohmann::ordered_json;

// Thrown for an unknown name, number or form: another version wrote the file.
struct MakesNoSense : std::exception {};

void Require(bool makes_sense) {
  if (!makes_sense) throw MakesNoSense();
}

// A whole number in the range of its type. Converted, a number beyond it would be another number.
template <typename T>
T Whole(const Json& json) {
  Require(json.is_number_integer());
  Require(json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>()) : std::in_range<T>(json.get<std::int64_t>()));
  return json.get<T>();
}

std::uint64_t AtMost(std::uint64_t most, const Json& json) {
  const auto value = Whole<std::uint64_t>(json);
  Require(value <= most);
  return value;
}

template <typename T = std::size_t>
std::vector<T> Numbers(const Json& json) {
  Require(json.is_array());
  std::vector<T> numbers;
  for (const Json& number : json) numbers.push_back(Whole<T>(number));
  return numbers;
}

// An enumerator that stands as its number.
template <typename E>
E Numbered(E last, const Json& json) {
  return static_cast<E>(AtMost(static_cast<std::uint64_t>(last), json));
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
  trial->unfired = Numbers(row.at("unfired"));
  trial->isolation = ToEnumerator<Isolation>(row.at("isolation"));
  for (const Json& why : row.at("fallback")) trial->fallback.push_back({ToEnumerator<Reason>(why.at(0)), why.at(1).get<std::string>()});
  trial->ending.exit_status = Whole<int>(row.at("exit_status"));
  trial->ending.signal = Whole<int>(row.at("signal"));
  trial->ending.timed_out = row.at("timed_out").get<bool>();
  trial->ending.left_behind = Whole<std::size_t>(row.at("left_behind"));
  trial->ending.survived = Whole<std::size_t>(row.at("survived"));
  trial->benign = Numbers(row.at("benign"));
  const Json& host = row.at("host_left_out");
  if (!host.get_ref<const std::string&>().empty()) trial->host_left_out = ToEnumerator<Reason>(host);
  trial->said = Numbered(Said::Failure, row.at("said"));
  trial->recovery = Numbered(Recovery::OlderContext, row.at("recovery"));
  for (const Json& why : row.at("skipped")) trial->skipped.push_back(ToEnumerator<Reason>(why));
  trial->later_keys.resize(Whole<std::size_t>(row.at("keyed")) == 0 ? 0 : 1);  // one for each later fault, however many these are
}

}  // namespace

const Json& LogRows::Content(Table table, const Json& number) const {
  Require(number.is_number_unsigned());
  return contents_[table].at(number.get<std::size_t>());
}

void LogRows::StandFor(std::size_t bytes) {
  stands_for_ += bytes;
  Require(stands_for_ <= kFreeBytes + kMostFold * read_bytes_);
}

std::string LogRows::Copied(const Json& json) {
  const auto& text = json.get_ref<const std::string&>();
  StandFor(text.size());
  return text;
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

std::string LogRows::Fault(std::uint64_t text, std::uint64_t occurrence) {
  std::string fault = Copied(Content(kText, text));
  const std::size_t at = fault.find('*');
  Require(std::in_range<std::uint32_t>(occurrence));
  const auto number = static_cast<std::uint32_t>(occurrence);
  Require((at == std::string::npos) == (number == 0));
  if (at != std::string::npos) fault.replace(at, 1, std::to_string(number));
  Require(fault.find('*') == std::string::npos);
  return fault;
}

report::Frame LogRows::Frame(const Json& number) {
  const Json& row = Content(kFrame, number);
  report::Frame frame;
  StandFor(sizeof(frame));
  frame.module = Text(row.at(0));
  frame.function = Text(row.at(1));
  frame.file = Text(row.at(2));
  frame.line = Whole<int>(row.at(3));
  frame.offset = Whole<std::uint64_t>(row.at(4));
  frame.start = Whole<std::uint64_t>(row.at(5));
  return frame;
}

PlaceText LogRows::Place(const Json& number) {
  const Json& row = Content(kPlace, number);
  read_.resize(contents_[kPlace].size());
  std::optional<PlaceText>& known = read_[number.get<std::size_t>()];
  if (known.has_value()) return *known;
  report::Acquired place;
  place.call = Copied(row.at(0));
  for (const Json& frame : row.at(1)) place.stack.push_back(Frame(frame));
  const bool nowhere = place.call.empty() && place.stack.empty();
  known = nowhere ? PlaceText() : PlaceText(std::move(place));
  return *known;
}

const TrialFindingText& LogRows::Finding(std::uint64_t number) {
  const Json& row = Content(kFinding, number);
  read_findings_.resize(contents_[kFinding].size());
  std::optional<TrialFindingText>& known = read_findings_[number];
  if (!known.has_value()) known = FindingOf(row);
  StandFor(sizeof(*known) + known->meter.size() + known->detail.size());
  if (known->blame)
    StandFor(known->blame->function.module.size() + known->blame->function.function.size() + known->blame->function.file.size());
  return *known;
}

TrialFindingText LogRows::FindingOf(const Json& row) {
  TrialFindingText finding;
  finding.rule = ToEnumerator<Rule>(row.at("rule"));
  finding.meter = Copied(row.at("meter"));
  const auto kind = row.at("kind").get<std::string>();
  if (finding.meter.empty()) finding.kind = driver::KindFromName(kind);
  Require(kind == KindName(finding));
  finding.count = AtMost(kMostOfAFinding, row.at("count"));
  finding.bytes = Whole<std::uint64_t>(row.at("bytes"));
  finding.acquired_key = Whole<std::uint64_t>(row.at("acquired_key"));
  finding.where_key = Whole<std::uint64_t>(row.at("where_key"));
  finding.other_key = Whole<std::uint64_t>(row.at("other_key"));
  finding.acquired = Place(row.at("acquired"));
  finding.where = Place(row.at("where"));
  finding.other = Place(row.at("other"));
  finding.released = Place(row.at("released"));
  if (const Json& blame = row.at("blame"); !blame.is_null()) {
    const auto because = Numbered(report::BlamedBecause::MadeTheCall, blame.at(0));
    finding.blame = report::Blame{Frame(blame.at(1)), because};
  }
  finding.detail = Copied(row.at("detail"));
  return finding;
}

std::shared_ptr<const AfterFault> LogRows::After(std::uint64_t number) {
  const Json& row = Content(kAfter, number);
  read_after_.resize(contents_[kAfter].size());
  std::shared_ptr<const AfterFault>& known = read_after_[number];
  if (known != nullptr) return known;
  AfterFault after;
  const Json& steps = row.at(0);
  Require(steps.is_array() && steps.size() % 2 == 0);
  for (std::size_t i = 0; i < steps.size(); i += 2) {
    StandFor(sizeof(AfterFault::Step));
    after.steps.push_back({Place(steps.at(i)), Whole<std::int32_t>(steps.at(i + 1))});
  }
  after.more = Whole<std::uint64_t>(row.at(1));
  after.held = Numbers<std::uint32_t>(row.at(2));
  after.missing = Numbers<std::uint32_t>(row.at(3));
  known = std::make_shared<const AfterFault>(std::move(after));
  return known;
}

std::vector<NextFault> LogRows::NextFaults(const Json& steps) {
  std::vector<NextFault> faults;
  const Json& numbers = steps.at("steps");
  const auto& states = steps.at("states").get_ref<const std::string&>();
  Require(numbers.size() % 2 == 0 && states.size() == numbers.size() / 2 * kStateDigits);
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const Json& step = Content(kStep, numbers.at(i));
    NextFault next;
    next.site = Whole<std::uint64_t>(step.at(0));
    next.step = Whole<std::uint64_t>(step.at(1));
    next.phase = Numbered(faults::Phase::Unwind, step.at(2));
    next.on_the_way_back = step.at(3).get<bool>();
    next.state = StateAt(states, i / 2);
    for (const Json& way : step.at(4)) {
      const std::string text = Fault(Whole<std::uint64_t>(way), Whole<std::uint64_t>(numbers.at(i + 1)));
      // On the way back a driver call fails, and the engine takes it to be one.
      Require(faults::ParseFault(text, &next.fault).expected == nullptr && faults::HostFaultOf(next.fault.base) == nullptr);
      StandFor(sizeof(next));
      faults.push_back(next);
    }
  }
  return faults;
}

Unwinding LogRows::ReadWayBack(const Json& row) {
  Unwinding unwinding;
  if (row.contains("shape")) unwinding.shape = Whole<std::uint64_t>(Content(kShape, row.at("shape")));
  if (row.contains("steps")) unwinding.faults = NextFaults(row);
  if (row.contains("left_out")) {
    for (const Json& one : row.at("left_out")) {
      for (const NextFault& next : NextFaults(one.at(1))) unwinding.left_out.push_back({next, ToEnumerator<Reason>(one.at(0))});
    }
  }
  if (row.contains("pruned")) {
    for (const auto& [name, count] : row.at("pruned").items()) unwinding.pruned[ToEnumerator<Reason>(name)] = AtMost(kMostPruned, count);
  }
  return unwinding;
}

const TrialResult& LogRows::ResultAt(std::uint64_t number) {
  const Json& row = Content(kResult, number);
  read_results_.resize(contents_[kResult].size());
  std::optional<TrialResult>& known = read_results_[number];
  if (!known.has_value()) ReadResult(row, &known.emplace());
  StandFor(known->fallback.size() * sizeof(Because) +
           (known->unfired.size() + known->benign.size() + known->skipped.size()) * sizeof(std::size_t));
  return *known;
}

TrialResult LogRows::ReadPlain(const PlainRow& row) {
  Require(!row.faults.empty() && row.faults.size() % 2 == 0);
  const std::size_t faults = row.faults.size() / 2;
  TrialResult trial = ResultAt(row.as);
  for (const std::size_t fault : trial.unfired) Require(fault < faults);
  trial.later_keys.resize(trial.later_keys.empty() ? 0 : faults - 1);
  trial.index = row.trial;
  trial.faults.reserve(faults);
  for (std::size_t i = 0; i < row.faults.size(); i += 2) trial.faults.push_back(Fault(row.faults[i], row.faults[i + 1]));
  Require(!row.at.empty() && row.at.size() <= faults);
  for (std::size_t i = 0; i < row.at.size(); ++i) {
    const Json& hit = Content(kHit, row.at[i]);
    const auto key = Whole<std::uint64_t>(hit.at(0));
    if (i == 0) {
      trial.fault_key = key;
      trial.fault_site = Place(hit.at(1));
    } else {
      if (i - 1 < trial.later_keys.size()) trial.later_keys[i - 1] = key;
      trial.later_sites.push_back(Place(hit.at(1)));
    }
  }
  for (const std::uint64_t number : row.findings) trial.findings.push_back(Finding(number));
  for (const std::uint64_t number : row.notes) trial.notes.push_back(Finding(number));
  if (row.after.has_value()) trial.after = After(*row.after);
  return trial;
}

TrialResult LogRows::ReadTrial(const Json& row) {
  if (row.contains("new")) Define(row.at("new"));
  plain_ = PlainRow();
  plain_.trial = Whole<std::size_t>(row.at("trial"));
  plain_.faults = Numbers(row.at("faults"));
  plain_.as = Whole<std::uint64_t>(row.at("as"));
  plain_.at = Numbers(row.at("at"));
  if (row.contains("findings")) plain_.findings = Numbers(row.at("findings"));
  if (row.contains("notes")) plain_.notes = Numbers(row.at("notes"));
  if (row.contains("after")) plain_.after = Whole<std::uint64_t>(row.at("after"));
  TrialResult trial = ReadPlain(plain_);
  if (row.contains("attempt")) trial.attempt = static_cast<int>(AtMost(kMostAttempts, row.at("attempt")));
  Require(trial.attempt > 0);
  if (row.contains("stray")) trial.stray = row.at("stray").get<bool>();
  if (row.contains("way_back")) trial.unwinding = ReadWayBack(row.at("way_back"));
  return trial;
}

std::optional<TrialResult> LogRows::Read(std::string_view line) {
  read_bytes_ += line.size();
  try {
    if (ReadPlainRow(line, &plain_)) return ReadPlain(plain_);
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
