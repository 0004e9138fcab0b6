// SPDX-License-Identifier: MIT
#include "allocator/settings.h"

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>

#include "allocator/options.h"

namespace cuaudit::alloc {

const char* Check(const Options& options) noexcept {
  for (const std::uint32_t divisions : options.roundup_power2_divisions) {
    if (divisions != 0 && (divisions > 64 || !std::has_single_bit(divisions)))
      return "roundup_power2_divisions: 0, or a power of two up to 64, for each step";
  }
  if (options.large_segment_size < kMinLargeAlloc || options.large_segment_size > kTooLarge ||
      options.large_segment_size % kRoundLarge != 0)
    return "large_segment_size: a multiple of 2 MiB, 10 MiB or more";
  if (options.max_split_size != 0 && options.max_split_size <= options.large_segment_size)
    return "max_split_size: more than large_segment_size, or 0 for no limit";
  if (options.max_non_split_rounding < kRoundLarge) return "max_non_split_rounding: 2 MiB or more";
  if (!(options.memory_fraction > 0.0) || !(options.memory_fraction <= 1.0)) return "memory_fraction: more than 0, at most 1";
  if (!(options.garbage_collection_threshold >= 0.0) || !(options.garbage_collection_threshold < 1.0))
    return "garbage_collection_threshold: 0 for off, or a fraction less than 1";
  if (options.page_size > kTooLarge || options.page_size % kRoundLarge != 0)
    return "page_size: a multiple of 2 MiB, or 0 for large_segment_size";
  if (!(options.remap_budget >= 0.0) || !(options.remap_budget <= 1.0)) return "remap_budget: 0 for off, or a fraction up to 1";
  if (options.remap_budget > 0.0 && !options.expandable_segments) return "remap_budget: needs expandable_segments";
  if (options.remap_budget > 0.0 && options.deterministic)
    return "deterministic: remap_budget is 0, since moving pages looks at GPU progress";
  if (options.max_stamps_per_stream < 4 || options.max_stamps_per_stream > 1024) return "max_stamps_per_stream: 4 to 1024";
  if (options.capture_check_interval < 1 || options.capture_check_interval > 1048576) return "capture_check_interval: 1 to 1048576";
  if (options.handle_check_interval < 1 || options.handle_check_interval > 1048576) return "handle_check_interval: 1 to 1048576";
  if (options.deterministic && options.reuse != Reuse::Wait) return "deterministic: needs reuse=wait, since polling looks at GPU progress";
  if (options.completion == Completion::StreamWrites && options.reuse == Reuse::Wait)
    return "completion: stream_writes needs reuse=poll, since streams wait for events";
  if (options.cross_stream == CrossStream::Wait && options.reuse != Reuse::Wait) return "cross_stream: wait needs reuse=wait";
  if (options.deterministic && options.cross_stream == CrossStream::Ready)
    return "deterministic: cross_stream is never or wait, since ready looks at GPU progress";
  if (options.thread_cache_bytes > kTooLarge) return "thread_cache_bytes: at most 1 EiB";
  return nullptr;
}

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::string_view kDivisionsExpected =
    "0, a power of two up to 64, or a list such as [1:4,1024:8,>:16] whose sizes are powers of two of MiB";

// The names and values of one choice.
template <class Value>
struct Choice {
  std::string_view name;
  Value value;
};
template <class Value, std::size_t kCount>
std::string Names(const std::array<Choice<Value>, kCount>& choices) {
  std::string names;
  for (std::size_t i = 0; i < kCount; ++i) names.append(i == 0 ? "" : i + 1 == kCount ? " or " : ", ").append(choices[i].name);
  return names;
}

// (name, value) as an initialiser.
#define CUAUDIT_PAIR_(name, value) \
  { #name, value }
#define CUAUDIT_PAIR(pair) CUAUDIT_PAIR_ pair
#define CUAUDIT_PAIRS_2(type, a, b) \
  std::array<Choice<type>, 2> { Choice<type> CUAUDIT_PAIR(a), Choice<type> CUAUDIT_PAIR(b) }
#define CUAUDIT_PAIRS_3(type, a, b, c) \
  std::array<Choice<type>, 3> { Choice<type> CUAUDIT_PAIR(a), Choice<type> CUAUDIT_PAIR(b), Choice<type> CUAUDIT_PAIR(c) }
#define CUAUDIT_PAIRS_4(type, a, b, c, d)                                                                                  \
  std::array<Choice<type>, 4> {                                                                                            \
    Choice<type> CUAUDIT_PAIR(a), Choice<type> CUAUDIT_PAIR(b), Choice<type> CUAUDIT_PAIR(c), Choice<type> CUAUDIT_PAIR(d) \
  }
#define CUAUDIT_PICK(_1, _2, _3, _4, name, ...) name
#define CUAUDIT_PAIRS(type, ...) CUAUDIT_PICK(__VA_ARGS__, CUAUDIT_PAIRS_4, CUAUDIT_PAIRS_3, CUAUDIT_PAIRS_2, )(type, __VA_ARGS__)

struct Token {
  std::string_view text;
  std::size_t position = 0;  // of its first character, from 1
};

bool IsSeparator(char letter) { return letter == ',' || letter == ':' || letter == '[' || letter == ']'; }
bool IsBlank(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }

std::vector<Token> Split(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (IsBlank(text[at])) {
      at = end;
      continue;
    }
    if (!IsSeparator(text[at])) {
      while (end < text.size() && !IsSeparator(text[end]) && !IsBlank(text[end])) ++end;
    }
    tokens.push_back({text.substr(at, end - at), at + 1});
    at = end;
  }
  tokens.push_back({"", text.size() + 1});
  return tokens;
}

std::optional<std::uint64_t> WholeNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// Whatever the process's locale. std::from_chars would do, but libc++ before 20 has none for fractions.
std::optional<double> DecimalNumber(std::string_view text) {
  if (text.empty() || text[0] == '+' || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  if (plain == nullptr) return std::nullopt;
  const std::string ended(text);
  char* end = nullptr;
  errno = 0;
  const double number = strtod_l(ended.c_str(), &end, plain);
  const bool is_whole = end == ended.c_str() + ended.size() && errno == 0;
  freelocale(plain);
  if (!is_whole) return std::nullopt;
  return number;
}

bool EqualsWithoutCase(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

class Parser {
 public:
  Parser(std::string_view text, std::string* error) : tokens_(Split(text)), error_(error) {}

  bool Run(Settings* settings) {
    std::vector<std::string_view> seen;
    while (!Here().text.empty()) {
      key_ = Here();
      if (IsSeparator(key_.text[0])) return Fail(key_, "a key");
      if (std::find(seen.begin(), seen.end(), key_.text) != seen.end()) return Fail(key_, "each key once");
      seen.push_back(key_.text);
      ++at_;
      bool is_known = false;
      if (!TakeValue(settings, &is_known)) return false;
      if (!is_known) return Fail(key_, "one of " + Known());
      if (Here().text.empty()) break;
      if (Here().text != ",") return Fail(Here(), "',' or the end");
      ++at_;
      if (Here().text.empty()) return Fail(Here(), "a key after ','");
    }
    if (const char* const wrong = Check(settings->options); wrong != nullptr) {
      *error_ = std::string("allocator settings: ") + wrong;
      return false;
    }
    return true;
  }

 private:
  const Token& Here() const { return tokens_[at_]; }

  bool Fail(const Token& token, std::string_view expected) {
    std::string text = "allocator settings: ";
    if (token.position != key_.position) text.append(key_.text).append(": ");
    if (token.text.empty()) {
      text += "the text ends at character ";
    } else {
      text.append("'").append(token.text).append("' at character ");
    }
    *error_ = text + std::to_string(token.position) + ", expected " + std::string(expected);
    return false;
  }

  bool Colon() {
    if (Here().text != ":") return Fail(Here(), "':' and a value");
    ++at_;
    return true;
  }

  // The one token of a plain value.
  bool Plain(std::string_view expected, Token* value) {
    if (!Colon()) return false;
    *value = Here();
    if (value->text.empty() || IsSeparator(value->text[0])) return Fail(*value, expected);
    ++at_;
    return true;
  }

  template <class Field>
  bool Number(std::string_view expected, std::uint64_t unit, std::uint64_t lowest, std::uint64_t highest, Field* field) {
    Token token;
    if (!Plain(expected, &token)) return false;
    const std::optional<std::uint64_t> number = WholeNumber(token.text);
    if (!number || *number < lowest || *number > highest) return Fail(token, expected);
    *field = static_cast<Field>(*number * unit);
    return true;
  }

  bool Fraction(std::string_view expected, double from, double to, double* field) {
    Token token;
    if (!Plain(expected, &token)) return false;
    const std::optional<double> value = DecimalNumber(token.text);
    if (!value || !(*value >= from) || !(*value <= to)) return Fail(token, expected);
    *field = *value;
    return true;
  }

  bool Switch(bool* field) {
    Token token;
    if (!Plain("True or False", &token)) return false;
    if (!EqualsWithoutCase(token.text, "true") && !EqualsWithoutCase(token.text, "false")) return Fail(token, "True or False");
    *field = EqualsWithoutCase(token.text, "true");
    return true;
  }

  template <class Value, std::size_t kCount>
  bool OneOf(const std::array<Choice<Value>, kCount>& choices, Value* field) {
    Token token;
    if (!Plain(Names(choices), &token)) return false;
    for (const Choice<Value>& choice : choices) {
      if (choice.name != token.text) continue;
      *field = choice.value;
      return true;
    }
    return Fail(token, Names(choices));
  }

  std::optional<std::uint32_t> DivisionsAt(const Token& token) const {
    const std::optional<std::uint64_t> number = WholeNumber(token.text);
    if (!number || *number > 64 || (*number != 0 && !std::has_single_bit(*number))) return std::nullopt;
    return static_cast<std::uint32_t>(*number);
  }

  bool Divisions(std::array<std::uint32_t, kDivisionSteps>* field) {
    if (!Colon()) return false;
    if (Here().text != "[") {
      const std::optional<std::uint32_t> all = DivisionsAt(Here());
      if (!all) return Fail(Here(), kDivisionsExpected);
      field->fill(*all);
      ++at_;
      return true;
    }
    // As PyTorch reads it: the first size speaks for the smaller ones too, `>` for all after the last; what is between and not named is 0.
    field->fill(0);
    std::size_t next = 0;
    bool is_over = false;
    do {
      ++at_;
      const Token size = Here();
      const std::optional<std::uint64_t> mib = WholeNumber(size.text);
      const bool is_rest = size.text == ">";
      if (is_over || (!is_rest && (!mib || !std::has_single_bit(*mib)))) return Fail(size, is_over ? "']' after '>'" : kDivisionsExpected);
      const std::size_t step = is_rest ? next : static_cast<std::size_t>(std::countr_zero(*mib));
      if (!is_rest && (step >= kDivisionSteps || step < next)) return Fail(size, "sizes in growing order, up to 32768");
      ++at_;
      if (!Colon()) return false;
      const std::optional<std::uint32_t> divisions = DivisionsAt(Here());
      if (!divisions) return Fail(Here(), "0 or a power of two up to 64");
      ++at_;
      if (is_rest) {
        std::fill(field->begin() + static_cast<std::ptrdiff_t>(step), field->end(), *divisions);
      } else {
        const std::size_t from = next == 0 ? 0 : step;
        std::fill(field->begin() + static_cast<std::ptrdiff_t>(from), field->begin() + static_cast<std::ptrdiff_t>(step) + 1, *divisions);
        next = step + 1;
      }
      is_over = is_rest;
    } while (Here().text == ",");
    if (Here().text != "]") return Fail(Here(), "',' or ']'");
    ++at_;
    return true;
  }

  bool TakeValue(Settings* settings, bool* is_known) {
    const std::string_view key = key_.text;
    *is_known = true;
#define CUAUDIT_ALLOC_MIB(name, field, lowest, highest, help) \
  if (key == #name) return Number("a whole number of MiB from " #lowest " to " #highest, kMiB, lowest, highest, &settings->field);
#define CUAUDIT_ALLOC_COUNT(name, field, lowest, highest, help) \
  if (key == #name) return Number("a whole number from " #lowest " to " #highest, 1, lowest, highest, &settings->field);
#define CUAUDIT_ALLOC_FRACTION(name, field, from, to, range, help) \
  if (key == #name) return Fraction(range, from, to, &settings->field);
#define CUAUDIT_ALLOC_SWITCH(name, field, help) \
  if (key == #name) return Switch(&settings->field);
#define CUAUDIT_ALLOC_CHOICE(name, field, type, help, ...) \
  if (key == #name) return OneOf(CUAUDIT_PAIRS(type, __VA_ARGS__), &settings->field);
#define CUAUDIT_ALLOC_DIVISIONS(name, field, help) \
  if (key == #name) return Divisions(&settings->field);
#define CUAUDIT_ALLOC_REFUSED(name, why) \
  if (key == #name) return Fail(key_, "another key: " why);
#include "allocator/settings.def"
    *is_known = false;
    return true;
  }

  static std::string Known() {
    std::string keys;
    for (const SettingRow& row : SettingRows()) keys.append(keys.empty() ? "" : ", ").append(row.key);
    return keys;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Token key_;
  std::string* error_;
};

std::string Shortest(double value) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof(text), value);
  return {text, written.ptr};
}

std::string Text(const std::array<std::uint32_t, kDivisionSteps>& divisions) {
  if (std::all_of(divisions.begin(), divisions.end(), [&](std::uint32_t each) { return each == divisions[0]; }))
    return std::to_string(divisions[0]);
  std::string text = "[";
  for (std::size_t step = 0; step < kDivisionSteps; ++step) {
    text.append(step == 0 ? "" : ",").append(std::to_string(std::size_t{1} << step)).append(":").append(std::to_string(divisions[step]));
  }
  return text + "]";
}

template <class Value, std::size_t kCount>
std::string NameOf(const std::array<Choice<Value>, kCount>& choices, Value value) {
  for (const Choice<Value>& choice : choices) {
    if (choice.value == value) return std::string(choice.name);
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> Values(const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> values;
#define CUAUDIT_ALLOC_MIB(name, field, lowest, highest, help) values.emplace_back(#name, std::to_string(settings.field / kMiB));
#define CUAUDIT_ALLOC_COUNT(name, field, lowest, highest, help) values.emplace_back(#name, std::to_string(settings.field));
#define CUAUDIT_ALLOC_FRACTION(name, field, from, to, range, help) values.emplace_back(#name, Shortest(settings.field));
#define CUAUDIT_ALLOC_SWITCH(name, field, help) values.emplace_back(#name, settings.field ? "True" : "False");
#define CUAUDIT_ALLOC_CHOICE(name, field, type, help, ...) \
  values.emplace_back(#name, NameOf(CUAUDIT_PAIRS(type, __VA_ARGS__), settings.field));
#define CUAUDIT_ALLOC_DIVISIONS(name, field, help) values.emplace_back(#name, Text(settings.field));
#define CUAUDIT_ALLOC_REFUSED(name, why)
#include "allocator/settings.def"
  return values;
}

}  // namespace

bool ParseSettings(std::string_view text, Settings* out, std::string* error) {
  Settings settings;
  if (!Parser(text, error).Run(&settings)) return false;
  *out = settings;
  return true;
}

std::string FormatSettings(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : Values(settings)) text.append(text.empty() ? "" : ",").append(key).append(":").append(value);
  return text;
}

std::vector<SettingRow> SettingRows() {
  std::vector<SettingRow> rows;
#define CUAUDIT_ALLOC_MIB(name, field, lowest, highest, help) \
  rows.push_back({#name, "a whole number of MiB from " #lowest " to " #highest, help});
#define CUAUDIT_ALLOC_COUNT(name, field, lowest, highest, help) \
  rows.push_back({#name, "a whole number from " #lowest " to " #highest, help});
#define CUAUDIT_ALLOC_FRACTION(name, field, from, to, range, help) rows.push_back({#name, range, help});
#define CUAUDIT_ALLOC_SWITCH(name, field, help) rows.push_back({#name, "True or False", help});
#define CUAUDIT_ALLOC_CHOICE(name, field, type, help, ...) rows.push_back({#name, Names(CUAUDIT_PAIRS(type, __VA_ARGS__)), help});
#define CUAUDIT_ALLOC_DIVISIONS(name, field, help) rows.push_back({#name, std::string(kDivisionsExpected), help});
#define CUAUDIT_ALLOC_REFUSED(name, why)
#include "allocator/settings.def"
  return rows;
}

std::vector<std::pair<std::string, std::string>> SettingsForSnapshot(const Settings& settings) {
  std::vector<std::pair<std::string, std::string>> shown = {
      {"PYTORCH_CUDA_ALLOC_CONF", FormatSettings(settings)},
      {"max_split_size",
       std::to_string(settings.options.max_split_size == 0 ? std::numeric_limits<std::int64_t>::max()
                                                           : static_cast<std::int64_t>(settings.options.max_split_size))}};
  for (auto& value : Values(settings)) shown.push_back(std::move(value));
  return shown;
}

}  // namespace cuaudit::alloc
