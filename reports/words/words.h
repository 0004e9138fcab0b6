// SPDX-License-Identifier: MIT
// words.h: the outcomes, verdicts, rules and reasons of a report as enumerations, each with its row of words.
//
//   Threads   values and constant tables; safe everywhere.
//
// The .def files beside this one hold the words: id, title, explanation, what to do. Code compares the enumerators. Only the writers of
// reports and `cuaudit list` and `explain` ask for the words; work directories hold the ids, and Named() finds the enumerator of an id.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cuaudit::words {

enum class Outcome : std::uint8_t {
#define CUAUDIT_OUTCOME(name, ...) name,
#include "reports/words/results.def"
};

enum class Verdict : std::uint8_t {
#define CUAUDIT_VERDICT(name, ...) name,
#include "reports/words/results.def"
};

enum class Rule : std::uint8_t {
#define CUAUDIT_RULE(name, ...) name,
#include "reports/words/rules.def"
#undef CUAUDIT_RULE
};

enum class Detail : std::uint8_t {
#define CUAUDIT_DETAIL(name, text) name,
#include "reports/words/details.def"
#undef CUAUDIT_DETAIL
};

enum class Level : std::uint8_t { Finding, Note, Told };

// What is wrong under a rule. Every place that asks which rules are losses asks this column.
enum class RuleSort : std::uint8_t {
  None,     // nothing: a rule of another level than Finding
  Lost,     // a trial did not give back an object: it is held, or its context took it along
  Kept,     // a run without a fault did not
  Entry,    // a context stack has other entries: one too many is held like an object, one too few was taken by a wrong call
  Changed,  // a thread, a stream or a setting was left otherwise than it was found
  Call,     // a driver call is wrong
  Program,  // what the program says, how it ends or goes on, its own memory and locks: driver calls alone do not show it
};

enum class Missed : std::uint8_t {
#define CUAUDIT_MISSED(name, ...) name,
#include "reports/words/results.def"
};

enum class ReasonGroup : std::uint8_t {
#define CUAUDIT_REASON_GROUP(name, about) name,
#include "reports/words/reasons.def"
};

enum class Reason : std::uint8_t {
#define CUAUDIT_REASON(name, ...) name,
#include "reports/words/reasons.def"
  None,  // no row: there is none
};

enum class Change : std::uint8_t {
#define CUAUDIT_CHANGE(name, ...) name,
#include "reports/words/results.def"
};

enum class Taken : std::uint8_t {
#define CUAUDIT_TAKEN(name, ...) name,
#include "reports/words/results.def"
};

// What a trial ran in. Unknown: its runner has one way only.
enum class Isolation : std::uint8_t { Unknown, Fork, Spawn, Cycle, InProcess };

struct OutcomeRow {
  std::string_view name, exit, title, explanation, advice;
};
inline constexpr OutcomeRow kOutcomes[] = {
#define CUAUDIT_OUTCOME(name, id, exit, title, explanation, advice) {id, exit, title, explanation, advice},
#include "reports/words/results.def"
};

struct VerdictRow {
  std::string_view name;
  int grave;
  std::string_view title, explanation, advice;
};
inline constexpr VerdictRow kVerdicts[] = {
#define CUAUDIT_VERDICT(name, id, grave, title, explanation, advice) {id, grave, title, explanation, advice},
#include "reports/words/results.def"
};
inline constexpr std::size_t kVerdictCount = std::size(kVerdicts);

struct RuleRow {
  std::string_view name;
  Level level;
  RuleSort sort;
  std::string_view title, explanation, advice;
};
inline constexpr RuleRow kRules[] = {
#define CUAUDIT_RULE(name, id, level, verdict, sort, title, explanation, advice) \
  {id, Level::level, RuleSort::sort, title, explanation, advice},
#include "reports/words/rules.def"
#undef CUAUDIT_RULE
};
inline constexpr std::size_t kRuleCount = std::size(kRules);
static_assert(std::all_of(std::begin(kRules), std::end(kRules),
                          [](const RuleRow& row) { return (row.sort == RuleSort::None) == (row.level != Level::Finding); }),
              "a rule that makes an outcome says what is wrong under it");

inline constexpr std::string_view kDetails[] = {
#define CUAUDIT_DETAIL(name, text) text,
#include "reports/words/details.def"
#undef CUAUDIT_DETAIL
};

struct MissedRow {
  std::string_view name, note, outcome, coverage;
  Reason counted;
  std::string_view advice;
};
inline constexpr MissedRow kMissed[] = {
#define CUAUDIT_MISSED(name, id, note, outcome, coverage, reason, advice) {id, note, outcome, coverage, Reason::reason, advice},
#include "reports/words/results.def"
};

inline constexpr std::string_view kReasonGroups[] = {
#define CUAUDIT_REASON_GROUP(name, about) about,
#include "reports/words/reasons.def"
};

struct ReasonRow {
  std::string_view name;
  ReasonGroup group;
  std::string_view text, of, coverage, advice;
};
inline constexpr ReasonRow kReasons[] = {
#define CUAUDIT_REASON(name, id, group, text, of, coverage, advice) {id, ReasonGroup::group, text, of, coverage, advice},
#include "reports/words/reasons.def"
};

struct ChangeRow {
  std::string_view name, title, explanation, advice;
};
inline constexpr ChangeRow kChanges[] = {
#define CUAUDIT_CHANGE(name, id, title, explanation, advice) {id, title, explanation, advice},
#include "reports/words/results.def"
};

struct TakenRow {
  std::string_view name, title;
};
inline constexpr TakenRow kTaken[] = {
#define CUAUDIT_TAKEN(name, id, title) {id, title},
#include "reports/words/results.def"
};

struct NameRow {
  std::string_view name;
};
inline constexpr NameRow kIsolations[] = {{""}, {"fork"}, {"spawn"}, {"cycle"}, {"in_process"}};
static_assert(std::size(kIsolations) == static_cast<std::size_t>(Isolation::InProcess) + 1);

constexpr std::span<const OutcomeRow> RowsOf(Outcome) { return kOutcomes; }
constexpr std::span<const VerdictRow> RowsOf(Verdict) { return kVerdicts; }
constexpr std::span<const RuleRow> RowsOf(Rule) { return kRules; }
constexpr std::span<const MissedRow> RowsOf(Missed) { return kMissed; }
constexpr std::span<const ReasonRow> RowsOf(Reason) { return kReasons; }
constexpr std::span<const ChangeRow> RowsOf(Change) { return kChanges; }
constexpr std::span<const TakenRow> RowsOf(Taken) { return kTaken; }
constexpr std::span<const NameRow> RowsOf(Isolation) { return kIsolations; }

template <typename E>
concept HasRows = requires(E value) {
  RowsOf(value);
};

template <HasRows E>
constexpr const auto& Row(E value) {
  return RowsOf(value)[static_cast<std::size_t>(value)];
}
template <HasRows E>
constexpr std::string_view Name(E value) {
  return Row(value).name;
}

// The enumerator with that id.
template <HasRows E>
constexpr std::optional<E> Named(std::string_view name) {
  for (std::size_t i = 0; i < RowsOf(E{}).size(); ++i) {
    if (RowsOf(E{})[i].name == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

namespace verdict_column {
inline constexpr std::optional<Verdict> None;
#define CUAUDIT_VERDICT(name, ...) inline constexpr std::optional<Verdict> name = Verdict::name;
#include "reports/words/results.def"
}  // namespace verdict_column
inline constexpr std::optional<Verdict> kVerdictOfRule[] = {
#define CUAUDIT_RULE(name, id, level, verdict, ...) verdict_column::verdict,
#include "reports/words/rules.def"
#undef CUAUDIT_RULE
};

// What an entry of a report with that rule amounts to; its trial may amount to something worse.
constexpr std::optional<Verdict> VerdictOf(Rule rule) { return kVerdictOfRule[static_cast<std::size_t>(rule)]; }

// What a trial amounts to that shows both.
constexpr Verdict Graver(Verdict a, Verdict b) { return Row(a).grave < Row(b).grave ? b : a; }

constexpr RuleSort SortOf(Rule rule) { return Row(rule).sort; }
// True for a rule about an object that was acquired and not given back.
constexpr bool IsLoss(Rule rule) { return SortOf(rule) == RuleSort::Lost || SortOf(rule) == RuleSort::Kept; }
// True when a process that dies or gives up has no chance to put it right.
constexpr bool IsUnsettled(Rule rule) { return SortOf(rule) == RuleSort::Entry || SortOf(rule) == RuleSort::Changed; }
// One rule for an object that a trial lost, whether its context took it along or not.
constexpr Rule WithoutItsContext(Rule rule) { return SortOf(rule) == RuleSort::Lost ? Rule::Leak : rule; }

// The other call that a finding of a rule names.
struct OtherCall {
  Rule rule;
  std::string_view is;  // what stands in front of it
  // True when it tells one violation from another: a collision is its two calls. Otherwise the object and the wrong call tell, and the
  // other call, made in between, only says how the object came to be gone.
  bool tells_apart = true;
  bool released = false;  // it released the object before the program went on to use it
};
inline constexpr OtherCall kOtherCalls[] = {
    {Rule::Orphaned, "declined before by", false, false},
    {Rule::DoubleRelease, "first released by", false, true},
    {Rule::UseAfterRelease, "released by", false, true},
    {Rule::Deficit, "closed before by", false, false},
    {Rule::DestroyedUnderUser, "destroyed by", true, true},
    {Rule::UsedAfterFree, "freed by", true, true},
    {Rule::ClosedAfterImport, "taken over by"},
    {Rule::LentReleased, "lent by"},
    {Rule::CaptureLeftActive, "then used by"},
    {Rule::ContextNotRestored, "then used by"},
    {Rule::SettingNotRestored, "then met by"},
};
constexpr OtherCall OtherCallOf(Rule rule) {
  for (const OtherCall& row : kOtherCalls) {
    if (row.rule == rule) return row;
  }
  return {rule, "collides with"};
}

// "fork, spawn or cycle": the names of the rows that have one.
template <typename Rows>
std::string NamesInWords(const Rows& rows) {
  std::vector<std::string_view> names;
  for (const auto& row : rows) {
    if (const std::string_view name = row.name; !name.empty()) names.push_back(name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) text.append(i == 0 ? "" : i + 1 == names.size() ? " or " : ", ").append(names[i]);
  return text;
}

// `words` with each of `of` in the place of a {}.
inline std::string Filled(std::string_view words, std::span<const std::string> of) {
  std::string filled;
  for (const std::string& one : of) {
    const std::size_t at = words.find("{}");
    if (at == std::string_view::npos) break;
    filled.append(words.substr(0, at)).append(one);
    words.remove_prefix(at + 2);
  }
  return filled.append(words);
}
inline std::string Filled(std::string_view words, std::string_view of) {
  const std::string one(of);
  return Filled(words, std::span(&one, 1));
}

// A reason, and the part of its text that varies.
struct Because {
  Reason reason = Reason::None;
  std::string of = {};

  auto operator<=>(const Because&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};
// How often something was left out.
using Counted = std::map<Because, std::uint64_t>;

// Why a trial ran in nothing faster: one for each way that it could not run in.
using Fallback = std::vector<Because>;

inline std::string Words(const Because& why) { return why.reason == Reason::None ? std::string() : Filled(Row(why.reason).text, why.of); }
inline std::string Words(Reason reason, std::string of = {}) { return Words(Because{reason, std::move(of)}); }
inline std::string Words(const Fallback& fallback) {
  std::string words;
  for (const Because& why : fallback) words += (words.empty() ? "" : "; ") + Words(why);
  return words;
}

// A row CUAUDIT_DETAIL, and the parts of its text that vary.
struct DetailPart {
  Detail detail{};
  std::vector<std::string> of = {};

  auto operator<=>(const DetailPart&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};
using Details = std::vector<DetailPart>;

// Of a note: the rule that it would break as a finding.
inline DetailPart WouldBe(Rule rule) { return {Detail::WouldBe, {std::string(Row(rule).title)}}; }

// Adds a part behind what is said already. A row that begins with a space, a comma or a colon goes on with the sentence.
inline void Add(const DetailPart& part, std::string* text) {
  const std::string_view words = kDetails[static_cast<std::size_t>(part.detail)];
  const bool goes_on = text->empty() || std::string_view(" ,:").find(words.front()) != std::string_view::npos;
  text->append(goes_on ? "" : "; ").append(Filled(words, part.of));
}
// So does a row behind one that ends with a space.
inline std::string Words(const Details& details) {
  std::string words;
  bool open = true;
  for (const DetailPart& part : details) {
    const std::string_view row = kDetails[static_cast<std::size_t>(part.detail)];
    if (open) words += Filled(row, part.of);
    else Add(part, &words);
    open = row.back() == ' ';
  }
  return words;
}
inline std::string Words(const DetailPart& part) { return Words(Details{part}); }

// A signal as reports name it: "SIGKILL"; "signal 34" for one that has no name.
inline std::string SignalName(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

}  // namespace cuaudit::words
