// SPDX-License-Identifier: MIT
#include "reports/reasons_json.h"

#include <limits>
#include <utility>

#include "reports/json_findings.h"
#include "reports/plus.h"

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
  BadEnd end;
  end.how = node["how"].Text();
  const std::uint64_t expected = node["expected"].Count();
  if (expected > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) node["expected"].Expected("an exit status");
  else end.expected = static_cast<int>(expected);
  return end;
}

}  // namespace

nlohmann::ordered_json ReasonToJson(const Because& why) {
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
    ran.in = Worded<Isolation>(one["in"], one["in"].Text(), "what a trial ran in: fork, spawn, cycle or in_process");
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
  message.chosen = ReadPart(node.Maybe("chosen"));
  message.abandoned = ReadPart(node.Maybe("abandoned"));
  message.coverage = ReadPart(node.Maybe("coverage"));
  if (const JsonNode end = node.Maybe("bad_end"); end.present()) message.bad_end = ReadBadEnd(end);
  if (const JsonNode one = node.Maybe("undecided"); one.present())
    message.undecided = Undecided{one["places"].Count(), one["cycles"].Count()};
  return message;
}

}  // namespace cuaudit::report
