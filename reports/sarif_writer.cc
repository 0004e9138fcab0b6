// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/json_text.h"
#include "reports/message.h"
#include "reports/sarif_places.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

constexpr std::size_t kMostUploaded = 25000;  // results that GitHub takes in one upload

// What becomes one result: a defect, a note, or what only the base has.
using Entry = std::variant<const Listed*, const Finding*, const Gone*>;

struct Writer {
  const SourceRoot& root;
  SarifProfile profile;
  std::vector<Rule> rules;  // those that results name; the place in this list is their ruleIndex

  bool full() const { return profile == SarifProfile::Full; }

  Json Begin(Rule rule, std::string_view level, std::string_view says) const {
    const auto index = std::lower_bound(rules.begin(), rules.end(), rule) - rules.begin();
    return Json{{"ruleId", words::Name(rule)}, {"ruleIndex", index}, {"level", level}, {"message", sarif::Message(says)}};
  }
};

// Notes that ask a person to do something; others only say that all is well.
bool AsksForMore(Rule rule) {
  return rule == Rule::HostLeft || rule == Rule::HostMisused || rule == Rule::Undecided || rule == Rule::Unjudged ||
         rule == Rule::NotExercised;
}

std::string_view BaselineState(Change change) {
  switch (change) {
    case Change::New:
      return "new";
    case Change::Changed:
      return "updated";
    case Change::Unchanged:
      return "unchanged";
    case Change::Fixed:
      return "absent";
    case Change::None:
    case Change::NotRun:
      break;
  }
  return {};
}

Json Fingerprints(const std::string& fingerprint) {
  return Json{{"primaryLocationLineHash", fingerprint}, {"cuauditDefect/v1", fingerprint}};
}

// GitHub refuses a result without a file: the module stands for the source that nobody knows.
Json LocationOf(const Writer& writer, const Run& run, const Defect& defect) {
  const std::optional<SourcePlace> place = PlaceOf(writer.root, run, defect);
  const Frame* const frame = FrameOf(run, defect);
  Json location = Json::object();
  if (place) {
    location["physicalLocation"] = sarif::Physical(*place);
  } else if (!writer.full()) {
    const std::string module = frame == nullptr || frame->module.empty() ? "unknown" : frame->module;
    location["physicalLocation"] = Json{{"artifactLocation", {{"uri", sarif::Uri(module)}}}, {"region", {{"startLine", 1}}}};
  }
  if (frame != nullptr) location["logicalLocations"] = Json::array({sarif::Logical(*frame)});
  return location;
}

// Places on the way as the steps of one thread; GitHub shows only those that have a file.
Json CodeFlow(const Writer& writer, const std::vector<Step>& steps) {
  Json locations = Json::array();
  for (const Step& step : steps) {
    Json location = sarif::Location(writer.root, step.stack, step.says);
    if (!writer.full() && !location.contains("physicalLocation")) continue;
    const std::string_view importance = step.on_way_back ? "important" : "essential";
    locations.push_back(Json{{"location", std::move(location)}, {"executionOrder", locations.size() + 1}, {"importance", importance}});
  }
  if (locations.empty()) return nullptr;
  return Json::array({Json{{"threadFlows", Json::array({Json{{"locations", std::move(locations)}}})}}});
}

void AddPlaces(const Writer& writer, const Run& run, const Defect& defect, Json* result) {
  std::vector<Step> steps = StepsOf(run, defect);
  if (Json flow = CodeFlow(writer, steps); !flow.is_null()) (*result)["codeFlows"] = std::move(flow);
  if (std::optional<Step> release = ReleaseOf(run, defect)) steps.push_back(std::move(*release));
  Json related = Json::array();
  Json stacks = Json::array();
  for (const Step& step : steps) {
    if (step.stack.empty() || step.on_way_back) continue;
    Json location = sarif::Location(writer.root, step.stack, step.says);
    if (writer.full() || location.contains("physicalLocation")) {
      location["id"] = related.size() + 1;
      related.push_back(std::move(location));
    }
    if (step.whole) stacks.push_back(sarif::Stack(writer.root, step.stack, step.says));
  }
  if (!related.empty()) (*result)["relatedLocations"] = std::move(related);
  if (writer.full() && !stacks.empty()) (*result)["stacks"] = std::move(stacks);
}

Json ResultOf(const Writer& writer, const Listed& listed) {
  const Run& run = *listed.run;
  const Defect& defect = *listed.defect;
  const Finding& root = RootOf(run, defect);
  Json result = writer.Begin(root.rule, "error", Sentence(run, defect));
  result["locations"] = Json::array({LocationOf(writer, run, defect)});
  if (!defect.fingerprint.empty()) result["partialFingerprints"] = Fingerprints(defect.fingerprint);
  if (listed.cases.size() > 1) result["occurrenceCount"] = listed.cases.size();
  AddPlaces(writer, run, defect, &result);
  if (const std::string_view state = BaselineState(defect.change); !state.empty()) result["baselineState"] = state;
  if (writer.full() && defect.suppressed) {
    Json suppression{{"kind", "external"}, {"status", defect.suppressed->expired ? "rejected" : "accepted"}};
    suppression["justification"] = sarif::Text(SuppressionOf(defect));
    result["suppressions"] = Json::array({std::move(suppression)});
  }
  Json properties{{"trials", defect.trials}, {"reproduce", root.reproduce}};
  if (!listed.cases.empty()) properties["cases"] = listed.cases;
  if (!defect.was.empty()) properties["was"] = defect.was;
  for (const TakenFor& one : defect.taken_for) properties["takenFor"].push_back(Describe(run, defect, one));
  result["properties"] = std::move(properties);
  return result;
}

Json ResultOf(const Writer& writer, const Finding& note) {
  std::string says = Headline(note);
  if (!note.title.empty()) says += ": " + note.title;
  if (!note.detail.empty()) says += ": " + note.detail;
  Json result = writer.Begin(note.rule, "note", says + ".");
  const std::vector<Frame>* stack = &note.acquired.stack;
  if (stack->empty()) stack = &note.where_stack;
  if (stack->empty() && note.fault) stack = &note.fault->stack;
  if (!stack->empty()) result["locations"] = Json::array({sarif::Location(writer.root, *stack, {})});
  if (!note.fingerprint.empty()) result["partialFingerprints"] = Fingerprints(note.fingerprint);
  result["properties"] = Json{{"trials", note.trials}, {"reproduce", note.reproduce}};
  return result;
}

Json ResultOf(const Writer& writer, const Gone& gone) {
  Json result = writer.Begin(gone.rule, "error", (gone.title.empty() ? std::string(words::Row(gone.rule).title) : gone.title) + ".");
  if (!gone.fingerprint.empty()) result["partialFingerprints"] = Fingerprints(gone.fingerprint);
  result["baselineState"] = BaselineState(gone.change);
  if (!gone.case_name.empty()) result["properties"] = Json{{"cases", Json::array({gone.case_name})}};
  return result;
}

Rule RuleOf(const Listed& listed) { return RootOf(*listed.run, *listed.defect).rule; }
Rule RuleOf(const Finding& note) { return note.rule; }
Rule RuleOf(const Gone& gone) { return gone.rule; }

std::vector<Entry> EntriesOf(const Audit& audit, const std::vector<Listed>& defects, SarifProfile profile) {
  std::vector<Entry> entries;
  const bool full = profile == SarifProfile::Full;
  for (const Listed& listed : defects) {
    if (!full && (IsSuppressed(*listed.defect) || entries.size() == kMostUploaded)) continue;
    entries.emplace_back(&listed);
  }
  if (!full) return entries;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      for (const Finding& note : run.notes) {
        if (AsksForMore(note.rule)) entries.emplace_back(&note);
      }
    }
  }
  if (!audit.comparison) return entries;
  // A cause that another case still shows, or did not look for, is not absent. Cases that lose one cause are one result.
  std::set<std::string_view> known;
  for (const Listed& listed : defects) known.insert(listed.defect->fingerprint);
  for (const Gone& gone : audit.comparison->gone) {
    if (gone.change != Change::Fixed) known.insert(gone.fingerprint);
  }
  for (const Gone& gone : audit.comparison->gone) {
    const bool fresh = gone.fingerprint.empty() || known.insert(gone.fingerprint).second;
    if (gone.change == Change::Fixed && fresh) entries.emplace_back(&gone);
  }
  return entries;
}

Json RuleEntry(Rule rule) {
  const words::RuleRow& row = words::Row(rule);
  const bool counts = row.level == words::Level::Finding;
  const std::string explanation(row.explanation);
  const std::string advice(row.advice);
  return Json{{"id", row.name},
              {"shortDescription", {{"text", row.title}}},
              {"fullDescription", {{"text", explanation}}},
              {"help",
               {{"text", explanation + " What to do: " + advice},
                {"markdown", ForMarkdown(explanation) + "\n\n**What to do:** " + ForMarkdown(advice)}}},
              {"defaultConfiguration", {{"level", counts ? "error" : "note"}}},
              {"properties",
               {{"tags", Json::array({"cuda", "resource-lifecycle"})},
                {"precision", "very-high"},  // each result happened in a trial
                {"problem.severity", counts ? "error" : "recommendation"}}}};
}

// Whether a text has a shape in which 'd' is a digit and 'x' one of hexadecimal. Reports come from files, so a field may hold anything.
bool HasShape(std::string_view text, std::string_view wanted) {
  return text.size() == wanted.size() && std::equal(text.begin(), text.end(), wanted.begin(), [](char c, char shape) {
           const bool digit = c >= '0' && c <= '9';
           return shape == 'd' ? digit : shape == 'x' ? digit || (c >= 'a' && c <= 'f') : c == shape;
         });
}

Json Notification(std::string_view level, const std::string& says) { return Json{{"level", level}, {"message", sarif::Message(says)}}; }

Json InvocationOf(const Case& one, const Run& run) {
  Json invocation{{"executionSuccessful", ProvesAll(run)}};
  if (Proves(run)) invocation["exitCode"] = run.outcome == Outcome::Clean ? 0 : 1;
  if (run.outcome == Outcome::NotExercised) invocation["exitCode"] = 3;
  if (run.interrupted) invocation["exitSignalName"] = ForTerminal(run.interrupted->signal);
  if (HasShape(run.generated, "dddd-dd-ddTdd:dd:ddZ")) invocation["endTimeUtc"] = run.generated;
  Json notifications = Json::array();
  if (const std::string message = MessageLine(run); !message.empty()) {
    const std::string_view level = ProvesAll(run) ? "note" : run.outcome == Outcome::Error ? "error" : "warning";
    notifications.push_back(Notification(level, message));
  }
  if (const std::string cut = Describe(LeftOutOf(run)); !cut.empty()) notifications.push_back(Notification("warning", cut));
  if (!notifications.empty()) invocation["toolExecutionNotifications"] = std::move(notifications);
  Json properties{{"mode", Name(run.mode)}, {"outcome", OutcomeName(run)}, {"program", run.command}, {"driver", Name(run.driver.kind)}};
  if (!one.name.empty()) properties["case"] = one.name;
  invocation["properties"] = std::move(properties);
  return invocation;
}

Json Invocations(const Audit& audit) {
  Json invocations = Json::array();
  Json beside = Json::array();
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) invocations.push_back(InvocationOf(one, run));
    if (const std::string_view what = NotRun(one); !what.empty()) {
      beside.push_back(Notification("warning", "case " + one.name + " was " + std::string(what) + ": " + WhyNotRun(one)));
    }
  }
  if (audit.comparison) {
    for (const Gone& gone : audit.comparison->gone) {
      if (gone.change == Change::Fixed) continue;
      beside.push_back(Notification("warning", "nobody looked for " + gone.fingerprint + " of the base in case " + gone.case_name + ": " +
                                                   (gone.because.empty() ? gone.title : gone.because)));
    }
    for (const NotProved& one : audit.comparison->not_run)
      beside.push_back(Notification("warning", "the base has " + NameOf(one) + ", and it was not run: " + one.why));
  }
  for (const std::string& entry : audit.unused_suppressions)
    beside.push_back(Notification("note", "no defect matches the suppression " + entry));
  if (!beside.empty()) {
    invocations.push_back(Json{{"executionSuccessful", true}, {"toolExecutionNotifications", std::move(beside)}});
  }
  return invocations;
}

// Uploads with the same id replace each other, so programs and drivers need different ones. A project names its own ("category").
std::string AutomationId(const Audit& audit) {
  std::set<std::string> drivers;
  std::string alone;
  for (const Case& one : audit.cases) {
    for (const Run& run : one.runs) {
      if (run.driver.kind != DriverKind::None) drivers.emplace(Name(run.driver.kind));
      if (!one.name.empty()) continue;
      alone = std::string(Name(run.mode)) + "/";
      if (!run.command.empty()) alone += run.command.front().substr(run.command.front().rfind('/') + 1) + "/";
    }
  }
  std::string id = "cuaudit/";
  for (const std::string& driver : drivers) id += driver + "/";
  return Shortened(id + alone, 200);
}

}  // namespace

bool WriteSarif(const Audit& audit, const SourceRoot& root, SarifProfile profile, std::ostream& out) {
  const std::vector<Listed> defects = ListDefects(audit);
  const std::vector<Entry> entries = EntriesOf(audit, defects, profile);
  Writer writer{root, profile, {}};
  for (const Entry& entry : entries) writer.rules.push_back(std::visit([](const auto* one) { return RuleOf(*one); }, entry));
  std::sort(writer.rules.begin(), writer.rules.end());
  writer.rules.erase(std::unique(writer.rules.begin(), writer.rules.end()), writer.rules.end());

  out << "{\n\"$schema\": \"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json\",\n"
      << "\"version\": \"2.1.0\",\n\"runs\": [{\n\"tool\": {\"driver\": {\"name\": \"cuaudit\"";
  if (!audit.tool_version.empty()) out << ", \"semanticVersion\": " << OnOneLine(audit.tool_version);
  out << ",\n\"rules\": ";
  WriteEntries(
      writer.rules, [](Rule rule) { return OnOneLine(RuleEntry(rule)); }, "\n  ", "\n]", out);
  out << "}},\n\"automationDetails\": " << OnOneLine(Json{{"id", AutomationId(audit)}, {"guid", GuidOf(ResultKeysOf(audit))}})
      << ",\n\"originalUriBaseIds\": {\"%SRCROOT%\": {\"description\": {\"text\": \"the folder that --source-root names\"}}}";
  if (audit.comparison && HasShape(audit.comparison->base_guid, "xxxxxxxx-xxxx-5xxx-xxxx-xxxxxxxxxxxx"))
    out << ",\n\"baselineGuid\": " << OnOneLine(audit.comparison->base_guid);
  if (const Json invocations = Invocations(audit); !invocations.empty()) {
    out << ",\n\"invocations\": ";
    WriteEntries(invocations, OnOneLine, "\n  ", "\n]", out);
  }
  out << ",\n\"properties\": " << OnOneLine(Json{{"summary", sarif::Text(Headline(audit, TallyOf(audit, defects)))}}) << ",\n\"results\": ";
  const auto result = [&writer](const Entry& entry) {
    return OnOneLine(std::visit([&](const auto* one) { return ResultOf(writer, *one); }, entry));
  };
  WriteEntries(entries, result, "\n  ", "\n]", out);
  out << "\n}]\n}\n";
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
