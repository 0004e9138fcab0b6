// SPDX-License-Identifier: MIT
#include "harness/options/option_rows.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "harness/process/toml_file.h"

namespace cuaudit::harness {
namespace {

using Sort = OptionRow::Sort;

const std::vector<OptionRow>& Rows() {
  using enum Echo;
  static const std::vector<OptionRow> rows = {
#define CUAUDIT_CHOICE(field, flag, default_value, choices, commands, echo, help) \
  {Sort::Choice, flag, choices, commands, echo, help, 0, 0, &Options::field, nullptr, nullptr, nullptr},
#define CUAUDIT_TEXT(field, flag, default_value, operand_name, commands, echo, help) \
  {Sort::Text, flag, operand_name, commands, echo, help, 0, 0, &Options::field, nullptr, nullptr, nullptr},
#define CUAUDIT_NUMBER(field, flag, default_value, lowest, highest, commands, echo, help) \
  {Sort::Number, flag, "", commands, echo, help, lowest, highest, nullptr, &Options::field, nullptr, nullptr},
#define CUAUDIT_SWITCH(field, flag, commands, echo, help) \
  {Sort::Switch, flag, "", commands, echo, help, 0, 0, nullptr, nullptr, &Options::field, nullptr},
#define CUAUDIT_LIST(field, flag, operand_name, commands, echo, help) \
  {Sort::List, flag, operand_name, commands, echo, help, 0, 0, nullptr, nullptr, nullptr, &Options::field},
#include "harness/options/options.def"
  };
  return rows;
}

// Keys of a case that change neither which trials there are nor how one is run and judged. The driver is what --driver=auto has chosen, and
// the directory may be the one of the caller: whoever runs a program adds them.
constexpr std::string_view kNoSettings[] = {"driver", "jobs", "isolation", "no_shrink", "coverage_at_least", "suppressions", "directory"};

}  // namespace

std::string OptionRow::Key() const {
  std::string key(std::string_view(flag).substr(2));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::span<const OptionRow> OptionRows() { return Rows(); }

const OptionRow* RowOfKey(std::string_view key) {
  const auto row = std::find_if(Rows().begin(), Rows().end(), [&](const OptionRow& one) { return one.IsKey() && one.Key() == key; });
  return row == Rows().end() ? nullptr : &*row;
}

const OptionRow* RowOfFlag(std::string_view flag) {
  const auto row = std::find_if(Rows().begin(), Rows().end(), [&](const OptionRow& one) { return one.flag == flag; });
  return row == Rows().end() ? nullptr : &*row;
}

std::string Expected(const OptionRow& row) {
  switch (row.sort) {
    case Sort::Choice: {
      std::string words;
      for (const std::string& word : SplitCommas(row.operand)) words += (words.empty() ? "" : ", ") + word;
      return "one of " + words;
    }
    case Sort::Text:
      return std::string("a text: ") + row.operand;
    case Sort::Number:
      return "a number from " + std::to_string(row.lowest) + " to " + std::to_string(row.highest);
    case Sort::Switch:
      return "true or false";
    case Sort::List:
      return std::string("a list of texts: ") + row.operand;
  }
  return {};
}

std::string ShowValue(const OptionRow& row, const Options& options) {
  switch (row.sort) {
    case Sort::Choice:
    case Sort::Text:
      return TomlString(options.*row.text);
    case Sort::Number:
      return std::to_string(options.*row.number);
    case Sort::Switch:
      return options.*row.flagged ? "true" : "false";
    case Sort::List: {
      std::string list;
      for (const std::string& one : options.*row.list) list += (list.empty() ? "" : ", ") + TomlString(one);
      return "[" + list + "]";
    }
  }
  return {};
}

Settings SettingsOf(const Options& options) {
  Settings settings;
  for (const OptionRow& row : Rows()) {
    const bool counts = row.IsKey() && (row.commands & kSweep) != 0;
    if (counts && std::find(std::begin(kNoSettings), std::end(kNoSettings), row.Key()) == std::end(kNoSettings))
      settings.emplace(row.flag,
                       row.list == &Options::environment ? "#" + Hex(HashText(ShowValue(row, options))) : ShowValue(row, options));
  }
  return settings;
}

void CopyOption(const OptionRow& row, const Options& from, Options* to) {
  if (row.text != nullptr) to->*row.text = from.*row.text;
  if (row.number != nullptr) to->*row.number = from.*row.number;
  if (row.flagged != nullptr) to->*row.flagged = from.*row.flagged;
  if (row.list != nullptr) to->*row.list = from.*row.list;
}

std::vector<std::string> SplitCommas(std::string_view list) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t comma = list.find(',');
    words.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    list.remove_prefix(comma + 1);
  }
}

std::vector<std::string> EchoOptions(const Options& options, Command command) {
  const Options defaults;
  std::vector<std::string> flags;
  for (const OptionRow& row : Rows()) {
    if (row.echo == Echo::kQuiet || (row.commands & command) == 0) continue;
    const std::string flag = row.flag;
    if (row.text != nullptr && options.*row.text != defaults.*row.text) flags.push_back(flag + "=" + options.*row.text);
    if (row.number != nullptr && options.*row.number != defaults.*row.number)
      flags.push_back(flag + "=" + std::to_string(options.*row.number));
    if (row.flagged != nullptr && options.*row.flagged) flags.push_back(flag);
    if (row.list == nullptr) continue;
    for (const std::string& value : options.*row.list) flags.push_back(flag + "=" + value);
  }
  return flags;
}

Status CheckOptions(const Options& options) {
  const std::span<const CommandRow> rows = Commands();
  const CommandRow& row = *std::find_if(rows.begin(), rows.end(), [&](const CommandRow& one) { return one.command == options.command; });
  const std::string usage = std::string("cuaudit ") + row.name + " [OPTIONS]" + row.usage;
  const char* instead = options.print_environment ? "--print-environment" : !options.pack.empty() ? "--pack" : "--from-journal";
  const bool is_instead = options.print_environment || !options.pack.empty() || !options.from_journal.empty();
  const bool takes_program = (options.command & (kAudit | kInit | kRecord)) != 0;
  if (is_instead && !options.program.empty()) return {Exit::Usage, std::string("expected no program beside ") + instead + ": " + usage};
  if (options.print_environment && !options.pack.empty()) return {Exit::Usage, "expected --print-environment or --pack, not both"};
  if (takes_program && !is_instead && options.program.empty()) return {Exit::Usage, "expected -- and a program: " + usage};
  const bool may_take_program = takes_program || (options.command & (kEnv | kPlan | kReduce)) != 0;
  if (!may_take_program && !options.program.empty()) return {Exit::Usage, std::string(row.name) + " takes no program: " + usage};
  if (options.command == kExplain && options.operand.empty() == options.rule.empty())
    return {Exit::Usage, "expected a journal or --rule: " + usage};
  if (options.command == kReplay && options.fault.empty()) return {Exit::Usage, "expected at least one --fault: " + usage};
  if (options.command == kCompare && options.operands.size() != 2) return {Exit::Usage, "expected a base and a head: " + usage};
  if (options.command == kBaseline) {
    const std::size_t count = options.operands.size();
    const bool shows = count == 2 && options.operands[0] == "show";
    const bool writes = (count == 2 || count == 3) && options.operands[0] == "write";
    if (!shows && !writes) return {Exit::Usage, "expected write and a result, or show and a file: " + usage};
  }
  if (options.command == kSuppress && options.operands.size() != 1) return {Exit::Usage, "expected a fingerprint: " + usage};
  const std::size_t named = options.operands.size() + (options.program.empty() ? 0 : 1);
  if (options.command == kReduce && (options.operands.empty() || options.operands.size() > 2 || named < 2))
    return {Exit::Usage, "expected a fingerprint, and a result or -- and a program: " + usage};
  if (options.command == kReport && options.operands.empty()) return {Exit::Usage, "expected a result: " + usage};
  if (options.no_prune && options.prune != Options().prune) return {Exit::Usage, "expected --prune or --no-prune, not both"};
  if (options.allow_left && !(options.lifetime + options.write_lifetime).empty())
    return {Exit::Usage, "expected --allow-left or --lifetime and --write-lifetime, not both"};
  if (options.host && options.no_host) return {Exit::Usage, "expected --host or --no-host, not both"};
  return {};
}

}  // namespace cuaudit::harness
