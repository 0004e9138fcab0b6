// SPDX-License-Identifier: MIT
#include "harness/compare/known_defect.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <utility>

#include "harness/defect/blame.h"
#include "harness/defect/defects.h"
#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/frames.h"
#include "reports/message.h"

namespace cuaudit::harness {
namespace {

// What compilers add to a name, and a name that is unknown, do not count.
std::string NameOf(const report::Frame& frame) { return std::string(PlainName(frame.function)); }

std::vector<std::string> FunctionsOf(const Stack& stack) {
  std::vector<std::string> names;
  for (const report::Frame& frame : stack) {
    if (!frame.function.empty() && IsProgram(frame)) names.push_back(NameOf(frame));
  }
  return names;
}

// Functions and lines: what a place is in whatever way it was compiled.
std::string PlaceIn(const Stack& stack) {
  std::string place;
  for (const report::Frame& frame : stack) {
    if (!IsProgram(frame)) continue;
    place += NameOf(frame) + ":" + std::to_string(frame.line != 0 ? static_cast<std::uint64_t>(frame.line) : frame.offset) + "\n";
  }
  return place;
}

using PlacesOfWays = std::map<FailingWay, std::set<std::string>>;

void AddWay(const report::Fault& fault, bool unwinding, PlacesOfWays* places) {
  const std::vector<std::string> functions = unwinding ? std::vector<std::string>() : FunctionsOf(fault.stack);
  FailingWay way{fault.call, fault.code, fault.how, unwinding, functions.empty() ? "" : functions.front(), 0};
  (*places)[std::move(way)].insert(unwinding ? "" : PlaceIn(fault.stack));
}

std::vector<FailingWay> WaysIn(const PlacesOfWays& places) {
  std::vector<FailingWay> ways;
  for (const auto& [way, at] : places) ways.emplace_back(way).places = at.size();
  return ways;
}

// A defect that first faults show is judged by first faults: which second ones there are depends on how the program unwinds.
void AddFailingWays(const report::Run& run, const report::Defect& defect, KnownDefect* known) {
  PlacesOfWays first;
  PlacesOfWays second;
  for (const report::Member& member : defect.members) {
    for (const std::size_t index : member.findings) {
      const report::Finding& finding = run.findings[index];
      if (!finding.fault) continue;
      AddWay(*finding.fault, false, finding.then.empty() ? &first : &second);
      if (!finding.then.empty()) AddWay(finding.then.back(), true, &second);
    }
  }
  known->failing = WaysIn(first.empty() ? second : first);
  if (!first.empty()) known->further = WaysIn(second);
}

// The most that one trial loses of each kind: one of first faults, if any of them shows the defect.
std::map<std::string, Amount> LostBy(const report::Run& run, const report::Defect& defect, std::uint64_t faults) {
  std::map<std::string, Amount> lost;
  for (const report::Member& member : defect.members) {
    Amount most;
    std::string kind;
    for (const std::size_t index : member.findings) {
      const report::Finding& finding = run.findings[index];
      if (faults <= 1 && !finding.then.empty()) continue;
      kind = finding.kind;
      most.count = std::max(most.count, finding.count);
      most.bytes = std::max(most.bytes, finding.bytes);
    }
    if (kind.empty()) continue;
    Amount& all = lost[kind];
    all.count += most.count;
    all.bytes += most.bytes;
  }
  return lost;
}

std::uint64_t FewestFaults(const report::Run& run, const report::Defect& defect) {
  std::uint64_t fewest = 0;
  for (const report::Member& member : defect.members) {
    for (const std::size_t index : member.findings) {
      const report::Finding& finding = run.findings[index];
      if (finding.fault && (fewest == 0 || finding.then.size() + 1 < fewest)) fewest = finding.then.size() + 1;
    }
  }
  return fewest;
}

// The first count of cycles at which more of each member was alive than at the first count. 0: that is unknown, as for a meter.
std::uint64_t GrownAfter(const report::Run& run, const report::Defect& defect) {
  std::uint64_t grown = 0;
  for (const report::Member& member : defect.members) {
    const report::Finding& finding = run.findings[member.findings.front()];
    const std::vector<std::string> functions = FunctionsOf(finding.acquired.stack);
    std::uint64_t seen = 0;
    for (const report::CycleRow& row : run.cycle_rows) {
      if (row.kind != finding.kind || row.acquired.call != finding.acquired.call || FunctionsOf(row.acquired.stack) != functions) continue;
      for (std::size_t i = 1; i < row.live.size() && i < run.cycle_counts.size(); ++i) {
        if (row.live[i] <= row.live[0]) continue;
        seen = std::max(seen, run.cycle_counts[i]);  // of two places of one function the later one
        break;
      }
    }
    if (seen == 0) return 0;
    grown = std::max(grown, seen);
  }
  return grown;
}

// For each defect the others that have all of its findings.
std::vector<std::vector<std::string>> DefectsBeside(const report::Run& run) {
  std::vector<std::set<std::size_t>> findings(run.defects.size());
  std::map<std::size_t, std::vector<std::size_t>> defects;  // by finding
  for (std::size_t i = 0; i < run.defects.size(); ++i) {
    for (const report::Member& member : run.defects[i].members) findings[i].insert(member.findings.begin(), member.findings.end());
    for (const std::size_t finding : findings[i]) defects[finding].push_back(i);
  }
  std::vector<std::vector<std::string>> beside(run.defects.size());
  for (std::size_t i = 0; i < run.defects.size(); ++i) {
    if (findings[i].empty()) continue;
    for (const std::size_t other : defects[*findings[i].begin()]) {
      const std::set<std::size_t>& of_other = findings[other];
      const bool has_all = std::includes(of_other.begin(), of_other.end(), findings[i].begin(), findings[i].end());
      if (other != i && has_all) beside[i].push_back(run.defects[other].fingerprint);
    }
    std::sort(beside[i].begin(), beside[i].end());
  }
  return beside;
}

ShownBy ShownByRun(const report::Run& run, const std::vector<std::string>& kinds) {
  ShownBy shown;
  shown.driver = driver::Name(run.driver.kind);
  shown.world = run.driver.world;
  shown.scope = run.scope;
  shown.settings = SettingsThatShow(run);
  for (const std::string& kind : kinds) {
    if (std::find(run.host.probes.begin(), run.host.probes.end(), kind) != run.host.probes.end()) shown.probes.push_back(kind);
  }
  if (run.mode == report::Mode::Cycles && !run.cycle_counts.empty()) {
    shown.cycles = *std::max_element(run.cycle_counts.begin(), run.cycle_counts.end());
  }
  return shown;
}

// Neither a folder nor a line: a baseline in a repository has no word about the machine that wrote it, and stays as it is when lines move.
std::string TitleOf(const report::Run& run, const report::Defect& defect) {
  const report::Finding& root = report::RootOf(run, defect);
  std::string title = report::RulesOf(run, defect);
  if (const std::string amount = report::AmountOf(run, defect); !amount.empty()) title += ": " + amount;
  const bool seen = root.acquired.call.empty();
  const report::Acquired place = seen ? report::Acquired{root.where, root.where_stack} : root.acquired;
  if (!place.call.empty()) words::Add({seen ? Detail::SeenAt : Detail::AcquiredBy, {place.call}}, &title);
  const std::vector<std::string> functions = FunctionsOf(place.stack);
  const std::string origin = functions.empty() ? report::DescribeOrigin(place.stack) : functions.front();
  if (!origin.empty()) title += " < " + origin;
  if (const std::string blame = report::BlameOf(run, defect); !blame.empty()) title += "; " + blame;
  return title;
}

}  // namespace

std::string Describe(const FailingWay& way) {
  return (way.unwinding ? "then " : "") + way.call + "=" + way.code + "," + way.how + (way.function.empty() ? "" : " in " + way.function);
}

std::vector<KnownDefect> KnownDefects(const std::string& case_name, const report::Run& run) {
  std::vector<KnownDefect> known;
  std::vector<std::vector<std::string>> beside = DefectsBeside(run);
  for (const report::Defect& defect : run.defects) {
    const report::Finding& root = report::RootOf(run, defect);
    KnownDefect one;
    one.case_name = case_name;
    one.mode = run.mode;
    one.fingerprint = defect.fingerprint;
    one.rule = root.rule;
    for (const report::Member& member : defect.members) {
      const std::string& kind = run.findings[member.findings.front()].kind;
      if (!kind.empty()) one.kinds.push_back(kind);
    }
    std::sort(one.kinds.begin(), one.kinds.end());
    one.kinds.erase(std::unique(one.kinds.begin(), one.kinds.end()), one.kinds.end());
    one.call = root.acquired.call.empty() ? root.where : root.acquired.call;
    one.stack = FunctionsOf(root.acquired.stack.empty() ? root.where_stack : root.acquired.stack);
    if (defect.blame) one.blame = NameOf(defect.blame->function);
    AddFailingWays(run, defect, &one);
    one.shown_by = ShownByRun(run, one.kinds);
    one.shown_by.faults = FewestFaults(run, defect);
    if (one.shown_by.cycles != 0) one.shown_by.grown = GrownAfter(run, defect);
    one.lost = LostBy(run, defect, one.shown_by.faults);
    one.title = TitleOf(run, defect);
    one.beside = std::move(beside[known.size()]);
    known.push_back(std::move(one));
  }
  return known;
}

std::vector<KnownDefect> KnownDefects(const report::Audit& audit) {
  std::vector<KnownDefect> known;
  for (const report::Case& one : audit.cases) {
    for (const report::Run& run : one.runs) {
      for (KnownDefect& defect : KnownDefects(one.name, run)) known.push_back(std::move(defect));
    }
  }
  return known;
}

std::set<KnownRun> KnownRuns(const report::Audit& audit) {
  std::set<KnownRun> known;
  for (const report::Case& one : audit.cases) {
    for (const report::Run& run : one.runs) {
      if (report::Proves(run)) known.insert({one.name, run.mode});
    }
  }
  return known;
}

void AddFunctions(const report::Run& run, std::set<std::string, std::less<>>* names) {
  const auto add = [names](const Stack& stack) {
    for (const report::Frame& frame : stack) {
      if (!frame.function.empty()) names->insert(NameOf(frame));
    }
  };
  for (const std::vector<report::Finding>* const list : {&run.findings, &run.notes}) {
    for (const report::Finding& finding : *list) {
      add(finding.acquired.stack);
      add(finding.where_stack);
      if (finding.fault) add(finding.fault->stack);
      for (const report::Fault& fault : finding.then) add(fault.stack);
    }
  }
  for (const report::Defect& defect : run.defects) {
    add(defect.released.stack);
    if (defect.blame) add({defect.blame->function});
  }
  for (const report::CycleRow& row : run.cycle_rows) add(row.acquired.stack);
  if (run.sequence) {
    for (const report::CallPlace& place : run.sequence->places) {
      if (place.at) add({*place.at});
    }
  }
  if (!run.coverage) return;
  for (const report::Tried& tried : run.coverage->tried) names->insert(tried.function);
  for (const report::NotReached& row : run.coverage->not_reached) add(row.stack);
}

std::string_view WithoutVersion(std::string_view call) {
  const std::size_t digits = call.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == call.size() || digits < 1) return call;
  return call.substr(digits - 1, 2) == "_v" ? call.substr(0, digits - 1) : call;
}

namespace {

using report::Rule;

constexpr std::string_view kEnvironment = "--environment=";
constexpr std::string_view kBenign = "--benign=";

enum class Effect {
  Shows,    // more is a defect with it
  Hides,    // less is a defect with it
  Measures  // it says from which size on a meter shows a defect
};

struct Setting {
  std::string_view flag;
  Effect effect;
  std::initializer_list<Rule> rules;  // what it decides; empty: everything
};

const Setting kSettings[] = {
    {"--orphans=finding", Effect::Shows, {Rule::Orphaned, Rule::LeftAtExit, Rule::Growth}},
    {"--abandoned-is-leak", Effect::Shows, {Rule::Leak, Rule::Orphaned}},
    {"--strict-exit", Effect::Shows, {Rule::Swallowed}},
    {kBenign, Effect::Hides, {}},
    {"--lifetime=", Effect::Hides, {Rule::LeftAtExit}},
    {"--allow-left", Effect::Hides, {Rule::LeftAtExit}},
    {"--detect=", Effect::Measures, {Rule::Growth}},
    {"--warm-up=", Effect::Measures, {Rule::Growth}},
};

const Setting* SettingOf(std::string_view text) {
  const auto fits = [text](const Setting& one) { return one.flag.ends_with('=') ? text.starts_with(one.flag) : text == one.flag; };
  const auto* const found = std::find_if(std::begin(kSettings), std::end(kSettings), fits);
  return found == std::end(kSettings) ? nullptr : found;
}

bool Has(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// True when the setting decides whether the defect shows.
bool Decides(const Setting& setting, std::string_view text, const KnownDefect& defect) {
  const auto rules = setting.rules;
  if (rules.size() != 0 && std::find(rules.begin(), rules.end(), defect.rule) == rules.end()) return false;
  if (setting.effect == Effect::Measures) return defect.stack.empty();  // places are counted, and not measured
  if (setting.flag != kBenign) return true;
  const std::string_view place = text.substr(kBenign.size());
  const std::string_view call = WithoutVersion(place.substr(0, place.find_first_of("#@")));
  return std::any_of(defect.failing.begin(), defect.failing.end(),
                     [call](const FailingWay& way) { return WithoutVersion(way.call) == call; });
}

std::string_view FileName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool SameWord(std::string_view one, std::string_view other) {
  return one == other || (one.starts_with('/') && other.starts_with('/') && FileName(one) == FileName(other));
}

std::vector<std::string_view> EnvironmentOf(const report::Run& run) {
  std::vector<std::string_view> variables;
  for (const std::string& text : run.settings) {
    if (text.starts_with(kEnvironment)) variables.push_back(std::string_view(text).substr(kEnvironment.size()));
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

bool SameVariable(std::string_view one, std::string_view other) {
  const std::size_t equals = one.find('=');
  if (equals == std::string_view::npos || one.substr(0, equals + 1) != other.substr(0, equals + 1)) return one == other;
  return SameWord(one.substr(equals + 1), other.substr(equals + 1));
}

template <typename T>
std::string Line(const std::vector<T>& words) {
  std::string line;
  for (const std::string_view word : words) line.append(line.empty() ? "" : " ").append(word);
  return line.empty() ? "none" : line;
}

}  // namespace

Details OtherCommand(const report::Run& before, const report::Run& now) {
  if (before.command.empty() || now.command.empty()) return {};
  const std::vector<std::string>& was = before.command;
  const std::vector<std::string>& is = now.command;
  if (FileName(was.front()) != FileName(is.front()) || !std::equal(was.begin() + 1, was.end(), is.begin() + 1, is.end(), SameWord)) {
    return {{Detail::OtherCommand, {Line(is), Line(was)}}};
  }
  const std::vector<std::string_view> had = EnvironmentOf(before);
  const std::vector<std::string_view> has = EnvironmentOf(now);
  if (std::equal(had.begin(), had.end(), has.begin(), has.end(), SameVariable)) return {};
  return {{Detail::OtherEnvironment, {Line(has), Line(had)}}};
}

std::vector<std::string> SettingsThatShow(const report::Run& run) {
  std::set<std::string> settings;
  std::copy_if(run.settings.begin(), run.settings.end(), std::inserter(settings, settings.end()),
               [](const std::string& text) { return SettingOf(text) != nullptr; });
  return {settings.begin(), settings.end()};
}

Details HidingSetting(const KnownDefect& defect, const report::Run& now) {
  const std::vector<std::string> has = SettingsThatShow(now);
  const std::vector<std::string>& had = defect.shown_by.settings;
  for (const std::string& text : has) {
    const Setting& setting = *SettingOf(text);
    if (setting.effect != Effect::Shows && !Has(had, text) && Decides(setting, text, defect)) return {{Detail::SettingIsNew, {text}}};
  }
  for (const std::string& text : had) {
    const Setting* const setting = SettingOf(text);
    if (setting == nullptr || setting->effect == Effect::Hides || Has(has, text)) continue;
    if (Decides(*setting, text, defect)) return {{Detail::SettingIsGone, {text}}};
  }
  return {};
}

}  // namespace cuaudit::harness
