// SPDX-License-Identifier: MIT
#include "reports/reasons_json.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/message.h"

namespace cuaudit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kNothingPlanned[] = {"", "nothing_can_fail", "nothing_chosen"};  // in the order of NothingPlanned

Json ToJson(const Part& part) { return Json{{"some", part.some}, {"all", part.all}}; }

std::optional<Part> ReadPart(const JsonNode& node) {
  if (!node.present()) return std::nullopt;
  return Part{node["some"].Count(), node["all"].Count()};
}

NothingPlanned ReadNothing(const JsonNode& node) {
  if (!node.present()) return NothingPlanned::No;
  const std::string text = node.Text();
  for (const NothingPlanned one : {NothingPlanned::NothingCanFail, NothingPlanned::NothingChosen}) {
    if (kNothingPlanned[static_cast<std::size_t>(one)] == text) return one;
  }
  node.Expected("nothing_can_fail or nothing_chosen");
  return NothingPlanned::No;
}

Json ToJson(const NeverFired& never) {
  Json trials = Json::array();
  for (const auto& [why, count] : never.trials) trials.push_back(Json{{"missed", words::Name(why)}, {"count", count}});
  return Json{
      {"trials", std::move(trials)}, {"planned", never.planned}, {"journals", never.journals}, {"faults", never.faults}, {"of", never.of}};
}

NeverFired ReadNeverFired(const JsonNode& node) {
  NeverFired never;
  if (!node.present()) return never;
  node["trials"].ForEach([&never](const JsonNode& one) {
    const Missed why = Worded<Missed>(one["missed"], one["missed"].Text(), "why a fault is missed (cuaudit list missed)");
    std::uint64_t& sum = never.trials[why];
    sum = Plus(sum, one["count"].Count());
  });
  never.planned = node["planned"].Count();
  never.journals = node["journals"].Text();
  never.faults = node["faults"].Texts();
  never.of = node["of"].Count();
  return never;
}

BadEnd ReadBadEnd(const JsonNode& node) {
  BadEnd end = {.how = node["how"].Text()};
  const std::uint64_t expected = node["expected"].Count();
  if (expected > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) node["expected"].Expected("an exit status");
  else end.expected = static_cast<int>(expected);
  return end;
}

// {"reason": "copy_differs", "of": "the heap"}; `of` only where it is not empty.
Json ReasonToJson(const Because& why) {
  Json json{{"reason", why.reason == Reason::None ? std::string_view() : words::Name(why.reason)}};
  if (!why.of.empty()) json["of"] = why.of;
  return json;
}

Because ReasonFromJson(const JsonNode& node) {
  const JsonNode id = node["reason"];
  const std::string text = id.Text();
  Because why;
  if (!text.empty()) why.reason = Worded<Reason>(id, text, "a reason that this version knows (cuaudit list reasons)");
  why.of = node.Maybe("of").Text();
  return why;
}

}  // namespace

nlohmann::ordered_json ReasonsToJson(const Counted& counts) {
  Json list = Json::array();
  for (const auto& [why, count] : counts) {
    list.push_back(ReasonToJson(why));
    list.back()["count"] = count;
  }
  return list;
}

Counted ReasonsFromJson(const JsonNode& node) {
  Counted counts;
  node.ForEach([&counts](const JsonNode& one) {
    std::uint64_t& sum = counts[ReasonFromJson(one)];
    sum = Plus(sum, one["count"].Count());
  });
  return counts;
}

nlohmann::ordered_json ReasonsToJson(const std::map<std::string, Because>& reasons) {
  Json json = Json::object();
  for (const auto& [name, why] : reasons) json[name] = ReasonToJson(why);
  return json;
}

std::map<std::string, Because> NamedReasonsFromJson(const JsonNode& node) {
  std::map<std::string, Because> reasons;
  node.ForEachKey([&reasons](const std::string& name, const JsonNode& why) { reasons[name] = ReasonFromJson(why); });
  return reasons;
}

nlohmann::ordered_json IsolationToJson(const std::map<Ran, std::uint64_t>& trials) {
  Json list = Json::array();
  for (const auto& [ran, count] : trials) {
    list.push_back(Json{{"in", words::Name(ran.in)}});
    for (const Because& why : ran.instead) list.back()["instead_of"].push_back(ReasonToJson(why));
    list.back()["count"] = count;
  }
  return list;
}

std::map<Ran, std::uint64_t> IsolationFromJson(const JsonNode& node) {
  std::map<Ran, std::uint64_t> trials;
  node.ForEach([&trials](const JsonNode& one) {
    Ran ran;
    ran.in = Worded<Isolation>(one["in"], one["in"].Text(), "what a trial ran in: " + words::NamesInWords(words::kIsolations));
    one.Maybe("instead_of").ForEach([&ran](const JsonNode& why) { ran.instead.push_back(ReasonFromJson(why)); });
    std::uint64_t& sum = trials[std::move(ran)];
    sum = Plus(sum, one["count"].Count());
  });
  return trials;
}

nlohmann::ordered_json MessageToJson(const Message& message) {
  Json json = Json::object();
  if (!message.told.empty()) json["told"] = message.told;
  if (message.nothing != NothingPlanned::No) json["nothing_planned"] = kNothingPlanned[static_cast<std::size_t>(message.nothing)];
  if (!message.never_fired.trials.empty()) json["never_fired"] = ToJson(message.never_fired);
  if (message.untried) json["untried"] = ToJson(*message.untried);
  if (message.chosen) json["chosen"] = ToJson(*message.chosen);
  if (message.abandoned) json["abandoned"] = ToJson(*message.abandoned);
  if (message.coverage) json["coverage"] = ToJson(*message.coverage);
  if (message.bad_end) json["bad_end"] = Json{{"how", message.bad_end->how}, {"expected", message.bad_end->expected}};
  if (message.undecided) json["undecided"] = Json{{"places", message.undecided->places}, {"cycles", message.undecided->cycles}};
  return json;
}

Message MessageFromJson(const JsonNode& node) {
  Message message;
  message.told = node.Maybe("told").Text();
  message.nothing = ReadNothing(node.Maybe("nothing_planned"));
  message.never_fired = ReadNeverFired(node.Maybe("never_fired"));
  message.untried = ReadPart(node.Maybe("untried"));
  message.chosen = ReadPart(node.Maybe("chosen"));
  message.abandoned = ReadPart(node.Maybe("abandoned"));
  message.coverage = ReadPart(node.Maybe("coverage"));
  if (const JsonNode end = node.Maybe("bad_end"); end.present()) message.bad_end = ReadBadEnd(end);
  if (const JsonNode one = node.Maybe("undecided"); one.present())
    message.undecided = Undecided{one["places"].Count(), one["cycles"].Count()};
  return message;
}

namespace {

using nlohmann::ordered_json;

// Numbers of texts, each once.
class TextTable {
 public:
  std::size_t Of(const std::string& text) {
    const auto [known, fresh] = known_.try_emplace(text, rows_.size());
    if (fresh) rows_.push_back(text);
    return known->second;
  }
  ordered_json Rows() { return std::move(rows_); }

 private:
  std::map<std::string, std::size_t> known_;
  ordered_json rows_ = ordered_json::array();
};

ordered_json OrNone(const std::optional<std::uint32_t>& number) { return number ? ordered_json(*number) : ordered_json(-1); }

std::uint32_t ReadIndex(const JsonNode& node, std::uint64_t below) {
  const std::uint64_t number = node.Count();
  if (number >= below) node.Expected("a number below " + std::to_string(below));
  return static_cast<std::uint32_t>(number);
}

// -1: none.
std::optional<std::uint32_t> ReadIndexOrNone(const JsonNode& node, std::uint64_t below) {
  if (node.Number() == -1) return std::nullopt;
  return ReadIndex(node, below);
}

std::vector<std::uint32_t> ReadIndices(const JsonNode& node, std::uint64_t below) {
  std::vector<std::uint32_t> numbers;
  node.ForEach([&](const JsonNode& one) { numbers.push_back(ReadIndex(one, below)); });
  return numbers;
}

}  // namespace

ordered_json SequenceToJson(const Sequence& sequence) {
  ordered_json places = ordered_json::array();
  for (const CallPlace& place : sequence.places) {
    places.push_back(ordered_json::array({place.call}));
    if (place.at)
      places.back().insert(places.back().end(), {place.at->module, place.at->function, place.at->file, place.at->line, place.at->offset});
  }
  ordered_json calls = ordered_json::array();
  for (const MadeCall& call : sequence.calls) calls.push_back(ordered_json::array({call.place, call.phase, call.cycle}));
  TextTable faults;
  TextTable verdicts;
  ordered_json trials = ordered_json::array();
  for (const TriedCall& trial : sequence.trials) {
    ordered_json texts = ordered_json::array();
    for (const std::string& fault : trial.faults) texts.push_back(faults.Of(fault));
    ordered_json then = ordered_json::array();
    for (const std::optional<std::uint32_t>& place : trial.then) then.push_back(OrNone(place));
    trials.push_back(ordered_json::array(
        {OrNone(trial.call), verdicts.Of(std::string(words::Name(trial.verdict))), std::move(texts), std::move(then), trial.defects}));
    if (trial.at) trials.back().push_back(*trial.at);
  }
  return ordered_json{{"places", std::move(places)},
                      {"calls", std::move(calls)},
                      {"more", sequence.more},
                      {"faults", faults.Rows()},
                      {"verdicts", verdicts.Rows()},
                      {"trials", std::move(trials)},
                      {"more_trials", sequence.more_trials}};
}

ordered_json UnwindingToJson(const Unwinding& unwinding) {
  ordered_json steps = ordered_json::array();
  for (const StepBack& step : unwinding.steps) steps.push_back(ordered_json::array({step.place, step.result}));
  return ordered_json{{"faults", unwinding.faults},
                      {"steps", std::move(steps)},
                      {"more", unwinding.more},
                      {"held", unwinding.held},
                      {"missing", unwinding.missing}};
}

std::optional<Sequence> SequenceFromJson(const JsonNode& json, std::size_t defects) {
  constexpr std::uint64_t kLines = std::uint64_t{1} << 31U;
  constexpr std::uint64_t kCycles = std::uint64_t{1} << 32U;
  Sequence sequence;
  json["places"].ForEach([&](const JsonNode& row) {
    CallPlace& place = sequence.places.emplace_back();
    place.call = row.At(0).Text();
    if (row.Size() < 2) return;
    place.at =
        Frame{row.At(1).Text(), row.At(2).Text(), row.At(3).Text(), static_cast<int>(ReadIndex(row.At(4), kLines)), row.At(5).Count()};
  });
  const std::size_t places = sequence.places.size();
  json["calls"].ForEach([&](const JsonNode& row) {
    sequence.calls.push_back({ReadIndex(row.At(0), places), row.At(1).Text(), ReadIndex(row.At(2), kCycles)});
  });
  sequence.more = json["more"].Count();
  const std::vector<std::string> faults = json["faults"].Texts();
  std::vector<Verdict> verdicts;
  json["verdicts"].ForEach([&](const JsonNode& name) { verdicts.push_back(Worded<Verdict>(name, name.Text(), "a verdict")); });
  json["trials"].ForEach([&](const JsonNode& row) {
    TriedCall trial;
    trial.call = ReadIndexOrNone(row.At(0), sequence.calls.size());
    const std::uint32_t verdict = ReadIndex(row.At(1), verdicts.size());
    const std::vector<std::uint32_t> texts = ReadIndices(row.At(2), faults.size());
    row.At(3).ForEach([&](const JsonNode& place) { trial.then.push_back(ReadIndexOrNone(place, places)); });
    trial.defects = ReadIndices(row.At(4), defects);
    if (row.Size() > 5) trial.at = ReadIndex(row.At(5), places);
    if (row.failed()) return;
    trial.verdict = verdicts[verdict];
    for (const std::uint32_t text : texts) trial.faults.push_back(faults[text]);
    sequence.trials.push_back(std::move(trial));
  });
  sequence.more_trials = json["more_trials"].Count();
  return json.failed() ? std::nullopt : std::optional<Sequence>(std::move(sequence));
}

std::optional<Unwinding> UnwindingFromJson(const JsonNode& json, const Sequence& sequence) {
  Unwinding unwinding;
  unwinding.faults = json["faults"].Texts();
  json["steps"].ForEach([&](const JsonNode& row) {
    unwinding.steps.push_back({ReadIndex(row.At(0), sequence.places.size()), row.At(1).Text()});
  });
  unwinding.more = json["more"].Count();
  unwinding.held = ReadIndices(json["held"], sequence.calls.size());
  unwinding.missing = ReadIndices(json["missing"], sequence.calls.size());
  return json.failed() ? std::nullopt : std::optional<Unwinding>(std::move(unwinding));
}

Json SuppressedToJson(const Suppressed& one) {
  return Json{{"reason", one.reason}, {"owner", one.owner}, {"until", one.until}, {"expired", one.expired}, {"entry", one.entry}};
}

Json LiveToJson(const std::vector<LiveRow>& live) {
  Json rows = Json::array();
  for (const LiveRow& row : live) {
    rows.push_back(
        Json{{"kind", row.kind}, {"acquired", row.acquired}, {"released", row.released}, {"live", row.live}, {"bytes", row.bytes}});
    if (row.orphaned != 0) rows.back()["orphaned"] = row.orphaned;
  }
  return rows;
}

Json GoneToJson(const Gone& gone) {
  Json json{{"change", words::Name(gone.change)}};
  if (!gone.because.empty()) json["because"] = gone.because;
  json["case"] = gone.case_name;
  json["mode"] = Name(gone.mode);
  json["fingerprint"] = gone.fingerprint;
  json["rule"] = words::Name(gone.rule);
  json["title"] = gone.title;
  return json;
}

void AddJudged(const Defect& defect, Json* json) {
  if (!defect.was.empty()) (*json)["was"] = defect.was;
  for (const TakenFor& one : defect.taken_for) {
    (*json)["taken_for"].push_back({{"why", words::Name(one.why)}, {"function", one.function}, {"fingerprint", one.fingerprint}});
  }
  if (defect.suppressed) (*json)["suppressed"] = SuppressedToJson(*defect.suppressed);
}

}  // namespace cuaudit::report
