// SPDX-License-Identifier: MIT
#include "harness/compare/conditions.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>

namespace cuaudit::harness {
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

std::string OtherCommand(const report::Run& before, const report::Run& now) {
  if (before.command.empty() || now.command.empty()) return {};
  const std::vector<std::string>& was = before.command;
  const std::vector<std::string>& is = now.command;
  if (FileName(was.front()) != FileName(is.front()) || !std::equal(was.begin() + 1, was.end(), is.begin() + 1, is.end(), SameWord)) {
    return "the command is another one: " + Line(is) + ", and the base has " + Line(was);
  }
  const std::vector<std::string_view> had = EnvironmentOf(before);
  const std::vector<std::string_view> has = EnvironmentOf(now);
  if (std::equal(had.begin(), had.end(), has.begin(), has.end(), SameVariable)) return {};
  return "the environment is another one: " + Line(has) + ", and the base has " + Line(had);
}

std::vector<std::string> SettingsThatShow(const report::Run& run) {
  std::set<std::string> settings;
  std::copy_if(run.settings.begin(), run.settings.end(), std::inserter(settings, settings.end()),
               [](const std::string& text) { return SettingOf(text) != nullptr; });
  return {settings.begin(), settings.end()};
}

std::string HidingSetting(const KnownDefect& defect, const report::Run& now) {
  const std::vector<std::string> has = SettingsThatShow(now);
  const std::vector<std::string>& had = defect.shown_by.settings;
  for (const std::string& text : has) {
    const Setting& setting = *SettingOf(text);
    if (setting.effect != Effect::Shows && !Has(had, text) && Decides(setting, text, defect)) return text + " was not there in the base";
  }
  for (const std::string& text : had) {
    const Setting* const setting = SettingOf(text);
    if (setting == nullptr || setting->effect == Effect::Hides || Has(has, text)) continue;
    if (Decides(*setting, text, defect)) return "the base has " + text;
  }
  return {};
}

}  // namespace cuaudit::harness
