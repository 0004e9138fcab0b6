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
  static const std::vector<OptionRow> rows = {
#define CUAUDIT_CHOICE(field, flag, default_value, choices, commands, echo, help) \
  {Sort::Choice, #field, flag, choices, commands, help, 0, 0, &Options::field, nullptr, nullptr, nullptr},
#define CUAUDIT_TEXT(field, flag, default_value, operand_name, commands, echo, help) \
  {Sort::Text, #field, flag, operand_name, commands, help, 0, 0, &Options::field, nullptr, nullptr, nullptr},
#define CUAUDIT_NUMBER(field, flag, default_value, lowest, highest, commands, echo, help) \
  {Sort::Number, #field, flag, "", commands, help, lowest, highest, nullptr, &Options::field, nullptr, nullptr},
#define CUAUDIT_SWITCH(field, flag, commands, echo, help) \
  {Sort::Switch, #field, flag, "", commands, help, 0, 0, nullptr, nullptr, &Options::field, nullptr},
#define CUAUDIT_LIST(field, flag, operand_name, commands, echo, help) \
  {Sort::List, #field, flag, operand_name, commands, help, 0, 0, nullptr, nullptr, nullptr, &Options::field},
#include "harness/options/options.def"
#undef CUAUDIT_CHOICE
#undef CUAUDIT_TEXT
#undef CUAUDIT_NUMBER
#undef CUAUDIT_SWITCH
#undef CUAUDIT_LIST
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
  for (const OptionRow& row : Rows()) {
    if (row.IsKey() && row.Key() == key) return &row;
  }
  return nullptr;
}

const OptionRow* RowOfFlag(std::string_view flag) {
  for (const OptionRow& row : Rows()) {
    if (row.flag == flag) return &row;
  }
  return nullptr;
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
  const auto wanted = [command](std::uint32_t commands, Echo echo) { return echo == Echo::kEcho && (commands & command) != 0; };
  const auto add = [&flags](const char* flag, const std::string& value) { flags.push_back(std::string(flag) + "=" + value); };
  using enum Echo;
#define CUAUDIT_CHOICE(field, flag, default_value, choices, commands, echo, help) \
  if (wanted(commands, echo) && options.field != defaults.field) add(flag, options.field);
#define CUAUDIT_TEXT(field, flag, default_value, operand_name, commands, echo, help) \
  if (wanted(commands, echo) && options.field != defaults.field) add(flag, options.field);
#define CUAUDIT_NUMBER(field, flag, default_value, lowest, highest, commands, echo, help) \
  if (wanted(commands, echo) && options.field != defaults.field) add(flag, std::to_string(options.field));
#define CUAUDIT_SWITCH(field, flag, commands, echo, help) \
  if (wanted(commands, echo) && options.field) flags.emplace_back(flag);
#define CUAUDIT_LIST(field, flag, operand_name, commands, echo, help) \
  if (wanted(commands, echo)) {                                       \
    for (const std::string& value : options.field) add(flag, value);  \
  }
#include "harness/options/options.def"
#undef CUAUDIT_CHOICE
#undef CUAUDIT_TEXT
#undef CUAUDIT_NUMBER
#undef CUAUDIT_SWITCH
#undef CUAUDIT_LIST
  return flags;
}

}  // namespace cuaudit::harness
