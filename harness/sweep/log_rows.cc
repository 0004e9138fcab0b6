// SPDX-License-Identifier: MIT
#include "harness/sweep/log_rows.h"

#include <algorithm>
#include <charconv>

namespace cuaudit::harness {
namespace {

class PlainReader {
 public:
  explicit PlainReader(std::string_view line) : rest_(line) {}

  bool Skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool Number(std::uint64_t* number) {
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *number);
    const auto digits = static_cast<std::size_t>(read.ptr - rest_.data());
    if (read.ec != std::errc() || (digits > 1 && rest_.front() == '0')) return false;
    rest_.remove_prefix(digits);
    return true;
  }

  bool Numbers(std::vector<std::uint64_t>* numbers) {
    numbers->clear();
    if (!Skip("[")) return false;
    if (Skip("]")) return true;
    do {
      std::uint64_t number = 0;
      if (!Number(&number)) return false;
      numbers->push_back(number);
    } while (Skip(","));
    return Skip("]");
  }

  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

using Json = nlohmann::ordered_json;

// A fault's text with '*' for the occurrence. Without an occurrence in its usual form the text stays as it is.
struct FaultParts {
  std::string text;
  std::uint32_t occurrence = 0;
};

FaultParts PartsOf(std::string_view text) {
  FaultParts parts{std::string(text)};
  std::size_t begin = text.find('#');
  if (begin == std::string_view::npos || text.find('*') != std::string_view::npos) return parts;
  begin += text.substr(begin).starts_with("#+") ? 2 : 1;
  const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
  const auto read = std::from_chars(text.data() + begin, text.data() + end, parts.occurrence);
  if (read.ec != std::errc() || parts.occurrence == 0 || text[begin] == '0') return {std::string(text)};
  parts.text.replace(begin, end - begin, "*");
  return parts;
}

// What many trials have in common.
Json ResultOf(const TrialResult& trial) {
  Json fallback = Json::array();
  for (const Because& why : trial.fallback) fallback.push_back(Json::array({Name(why.reason), why.of}));
  Json skipped = Json::array();
  for (const Reason why : trial.skipped) skipped.push_back(Name(why));
  return Json{{"verdict", Name(trial.verdict)},
              {"missed", Name(trial.missed)},
              {"fired", trial.fired},
              {"unfired", trial.unfired},
              {"isolation", Name(trial.isolation)},
              {"fallback", std::move(fallback)},
              {"exit_status", trial.ending.exit_status},
              {"signal", trial.ending.signal},
              {"timed_out", trial.ending.timed_out},
              {"left_behind", trial.ending.left_behind},
              {"survived", trial.ending.survived},
              {"benign", trial.benign},
              {"host_left_out", trial.host_left_out == Reason::None ? std::string_view() : Name(trial.host_left_out)},
              {"said", static_cast<int>(trial.said)},
              {"recovery", static_cast<int>(trial.recovery)},
              {"skipped", std::move(skipped)},
              {"keyed", trial.later_keys.size()}};
}

// Equal keys are equal rows of ResultOf.
std::string ResultKey(const TrialResult& trial) {
  std::string key;
  const auto add = [&key](auto... numbers) { ((key.append(std::to_string(static_cast<std::int64_t>(numbers))) += ' '), ...); };
  const Ending& ending = trial.ending;
  add(trial.verdict, trial.missed, trial.fired, trial.isolation, trial.host_left_out, trial.said, trial.recovery, trial.later_keys.size());
  add(ending.exit_status, ending.signal, ending.timed_out, ending.left_behind, ending.survived);
  for (const std::size_t fault : trial.unfired) add(fault);
  key += ';';
  for (const std::size_t number : trial.benign) add(number);
  key += ';';
  for (const Reason why : trial.skipped) add(why);
  for (const Because& why : trial.fallback) {
    key += ';';
    add(why.reason);
    key += why.of;
  }
  return key;
}

void AddNumber(std::string_view name, std::uint64_t number, std::string* line) {
  line->append(",\"").append(name).append("\":").append(std::to_string(number));
}

void AddNumbers(std::string_view name, const std::vector<std::uint64_t>& numbers, std::string* line) {
  line->append(",\"").append(name).append("\":[");
  for (std::size_t i = 0; i < numbers.size(); ++i) line->append(i == 0 ? "" : ",").append(std::to_string(numbers[i]));
  *line += ']';
}

bool SameStep(const NextFault& a, const NextFault& b) {
  return a.site == b.site && a.step == b.step && a.phase == b.phase && a.on_the_way_back == b.on_the_way_back && a.state == b.state;
}

}  // namespace

bool ReadPlainRow(std::string_view line, PlainRow* row) {
  PlainReader reader(line);
  row->findings.clear();
  row->notes.clear();
  row->after.reset();
  if (!reader.Skip(R"({"trial":)") || !reader.Number(&row->trial)) return false;
  if (!reader.Skip(R"(,"faults":)") || !reader.Numbers(&row->faults)) return false;
  if (!reader.Skip(R"(,"as":)") || !reader.Number(&row->as)) return false;
  if (!reader.Skip(R"(,"at":)") || !reader.Numbers(&row->at)) return false;
  if (reader.Skip(R"(,"findings":)") && !reader.Numbers(&row->findings)) return false;
  if (reader.Skip(R"(,"notes":)") && !reader.Numbers(&row->notes)) return false;
  if (reader.Skip(R"(,"after":)") && !reader.Number(&row->after.emplace())) return false;
  return reader.Skip("}") && reader.at_end();
}

// Paths and symbol names may hold any byte, so invalid UTF-8 is replaced.
std::string LogRows::Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::size_t LogRows::Number(Table table, const Json& content) {
  const auto [known, fresh] = numbers_[table].try_emplace(Dump(content), contents_[table].size());
  if (fresh) {
    contents_[table].push_back(content);
    new_.push_back(Json::array({kTables.substr(table, 1), content}));
  }
  return known->second;
}

std::size_t LogRows::TextRow(const std::string& text) {
  const auto known = texts_.find(text);
  return known != texts_.end() ? known->second : texts_.emplace(text, Number(kText, text)).first->second;
}

std::size_t LogRows::ResultRow(const TrialResult& trial) {
  const std::string key = ResultKey(trial);
  const auto known = results_.find(key);
  return known != results_.end() ? known->second : results_.emplace(key, Number(kResult, ResultOf(trial))).first->second;
}

std::size_t LogRows::HitRow(std::uint64_t key, const PlaceText& place) {
  const std::pair<std::uint64_t, std::size_t> hit(key, PlaceRow(place));
  const auto known = hits_.find(hit);
  return known != hits_.end() ? known->second : hits_.emplace(hit, Number(kHit, Json::array({key, hit.second}))).first->second;
}

std::size_t LogRows::FrameRow(const report::Frame& frame) {
  return Number(kFrame,
                Json::array({TextRow(frame.module), TextRow(frame.function), TextRow(frame.file), frame.line, frame.offset, frame.start}));
}

std::size_t LogRows::PlaceRow(const PlaceText& place) {
  const auto known = written_.find(&*place);
  if (known != written_.end()) return known->second.second;
  Json frames = Json::array();
  for (const report::Frame& frame : place->stack) frames.push_back(FrameRow(frame));
  const std::size_t number = Number(kPlace, Json::array({place->call, std::move(frames)}));
  written_.emplace(&*place, std::pair(place, number));
  return number;
}

std::size_t LogRows::FindingRow(const TrialFindingText& finding) {
  const std::size_t blamed = finding.blame ? FrameRow(finding.blame->function) : 0;
  const std::size_t acquired = PlaceRow(finding.acquired);
  const std::size_t where = PlaceRow(finding.where);
  const std::size_t other = PlaceRow(finding.other);
  const std::size_t released = PlaceRow(finding.released);
  std::string key;
  for (const std::uint64_t part : {static_cast<std::uint64_t>(finding.rule), static_cast<std::uint64_t>(finding.kind), finding.count,
                                   finding.bytes, finding.acquired_key, finding.where_key, finding.other_key, acquired, where, other,
                                   released, finding.blame ? 1 + static_cast<std::uint64_t>(finding.blame->because) : 0, blamed}) {
    key.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  key.append(finding.meter).append(1, '\0').append(finding.detail);
  const auto known = findings_.find(key);
  if (known != findings_.end()) return known->second;
  Json blame = nullptr;
  if (finding.blame) blame = Json::array({static_cast<int>(finding.blame->because), blamed});
  const std::size_t number = Number(kFinding, Json{{"rule", Name(finding.rule)},
                                                   {"kind", KindName(finding)},
                                                   {"count", finding.count},
                                                   {"bytes", finding.bytes},
                                                   {"acquired_key", finding.acquired_key},
                                                   {"where_key", finding.where_key},
                                                   {"other_key", finding.other_key},
                                                   {"acquired", acquired},
                                                   {"where", where},
                                                   {"other", other},
                                                   {"released", released},
                                                   {"blame", std::move(blame)},
                                                   {"meter", finding.meter},
                                                   {"detail", finding.detail}});
  return findings_.emplace(std::move(key), number).first->second;
}

std::size_t LogRows::AfterRow(const std::shared_ptr<const AfterFault>& after) {
  const auto known = written_after_.find(after.get());
  if (known != written_after_.end()) return known->second.second;
  Json steps = Json::array();
  for (const AfterFault::Step& step : after->steps) {
    steps.push_back(PlaceRow(step.place));
    steps.push_back(step.result);
  }
  const std::size_t number = Number(kAfter, Json::array({std::move(steps), after->more, after->held, after->missing}));
  written_after_.emplace(after.get(), std::pair(after, number));
  return number;
}

std::vector<std::uint64_t> LogRows::Findings(const std::vector<TrialFindingText>& findings) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(findings.size());
  for (const TrialFindingText& finding : findings) numbers.push_back(FindingRow(finding));
  return numbers;
}

std::vector<std::uint64_t> LogRows::Hits(const TrialResult& trial) {
  std::vector<std::uint64_t> hits = {HitRow(trial.fault_key, trial.fault_site)};
  for (std::size_t i = 0; i < trial.later_sites.size(); ++i) {
    const std::uint64_t key = i < trial.later_keys.size() ? trial.later_keys[i] : 0;
    hits.push_back(HitRow(key, trial.later_sites[i]));
  }
  return hits;
}

// The ways in which one call can fail stand together.
Json LogRows::Steps(std::span<const NextFault> faults) {
  Json steps = Json::array();
  std::string states;
  for (auto next = faults.begin(); next != faults.end();) {
    Json ways = Json::array();
    const FaultParts first = PartsOf(TextOf(next->fault));
    const auto begin = next;
    for (; next != faults.end() && SameStep(*next, *begin); ++next) {
      const FaultParts parts = PartsOf(TextOf(next->fault));
      if (parts.occurrence != first.occurrence) break;
      ways.push_back(TextRow(parts.text));
    }
    steps.push_back(
        Number(kStep, Json::array({begin->site, begin->step, static_cast<int>(begin->phase), begin->on_the_way_back, std::move(ways)})));
    steps.push_back(first.occurrence);
    for (std::uint64_t digits = 0, state = begin->state; digits < kStateDigits; ++digits, state >>= 6U)
      states += kDigits[state % kDigits.size()];
  }
  return Json{{"steps", std::move(steps)}, {"states", std::move(states)}};
}

Json LogRows::WayBack(const Unwinding& unwinding) {
  Json row = Json::object();
  if (unwinding.shape != 0) row["shape"] = Number(kShape, unwinding.shape);
  if (!unwinding.faults.empty()) row.update(Steps(unwinding.faults));
  std::vector<NextFault> left_out;
  for (std::size_t i = 0; i < unwinding.left_out.size(); ++i) {
    left_out.push_back(unwinding.left_out[i].fault);
    const Reason why = unwinding.left_out[i].why;
    if (i + 1 < unwinding.left_out.size() && unwinding.left_out[i + 1].why == why) continue;
    row["left_out"].push_back(Json::array({Name(why), Steps(left_out)}));
    left_out.clear();
  }
  for (const auto& [reason, count] : unwinding.pruned) row["pruned"][std::string(Name(reason))] = count;
  return row;
}

// A line is text at once: with a document for each, writing the log would take as long as judging the trials.
std::string LogRows::Write(const TrialResult& trial) {
  new_ = Json::array();
  std::string line = "{\"trial\":" + std::to_string(trial.index);
  if (trial.attempt != 1) line += ",\"attempt\":" + std::to_string(trial.attempt);
  if (trial.stray) line += ",\"stray\":true";
  std::vector<std::uint64_t> faults;
  for (const std::string& fault : trial.faults) {
    const FaultParts parts = PartsOf(fault);
    faults.insert(faults.end(), {TextRow(parts.text), parts.occurrence});
  }
  AddNumbers("faults", faults, &line);
  AddNumber("as", ResultRow(trial), &line);
  AddNumbers("at", Hits(trial), &line);
  if (!trial.findings.empty()) AddNumbers("findings", Findings(trial.findings), &line);
  if (!trial.notes.empty()) AddNumbers("notes", Findings(trial.notes), &line);
  if (trial.after != nullptr) AddNumber("after", AfterRow(trial.after), &line);
  const Json way_back = WayBack(trial.unwinding);
  if (!way_back.empty()) line.append(",\"way_back\":").append(Dump(way_back));
  if (!new_.empty()) line.append(",\"new\":").append(Dump(new_));
  return line += "}\n";
}

}  // namespace cuaudit::harness
