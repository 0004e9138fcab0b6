// SPDX-License-Identifier: MIT
// verdict.h: what a trial can come to, and the reasons why less was tried or judged than planned, each with its row of words.
//
//   Threads   values and constant tables; safe everywhere.
//   Faults    makes no driver calls.
//
// verdicts.def, missed.def and reasons.def hold the words. Code compares the enumerators. Reports, work directories and messages take the
// words from the rows, and Named() finds the enumerator again by its id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/ledger/rules.h"

namespace cuaudit::harness {

enum class Verdict : std::uint8_t {
#define CUAUDIT_VERDICT(name, ...) name,
#include "harness/verdict/verdicts.def"
#undef CUAUDIT_VERDICT
};

enum class Missed : std::uint8_t {
#define CUAUDIT_MISSED(name, ...) name,
#include "harness/verdict/missed.def"
#undef CUAUDIT_MISSED
};

enum class ReasonGroup : std::uint8_t {
#define CUAUDIT_REASON(...)
#define CUAUDIT_REASON_GROUP(name, about) name,
#include "harness/verdict/reasons.def"
#undef CUAUDIT_REASON_GROUP
#undef CUAUDIT_REASON
};

enum class Reason : std::uint8_t {
#define CUAUDIT_REASON_GROUP(...)
#define CUAUDIT_REASON(name, ...) name,
#include "harness/verdict/reasons.def"
#undef CUAUDIT_REASON
#undef CUAUDIT_REASON_GROUP
  None,  // no row: there is none
};

// What the program told its caller about the faulted cycle.
enum class Said : std::uint8_t { Nothing, Success, Failure };

// Whether the clean cycle after the faulted one was looked at, and if not, why.
enum class Recovery : std::uint8_t { NoFault, Checked, NoMarks, NoCycleAfter, GaveUp, Refused, Died, GivenContext, LostKept, OlderContext };

// What a trial ran in. Unknown: its runner has one way only.
enum class Isolation : std::uint8_t { Unknown, Fork, Spawn, Cycle, InProcess };

struct VerdictRow {
  std::string_view name, title, explanation, advice;
};
inline constexpr VerdictRow kVerdicts[] = {
#define CUAUDIT_VERDICT(name, id, title, explanation, advice) {id, title, explanation, advice},
#include "harness/verdict/verdicts.def"
#undef CUAUDIT_VERDICT
};
inline constexpr std::size_t kVerdictCount = std::size(kVerdicts);

struct MissedRow {
  std::string_view name, note, outcome, coverage;
  Reason counted;
};
inline constexpr MissedRow kMissed[] = {
#define CUAUDIT_MISSED(name, id, note, outcome, coverage, reason) {id, note, outcome, coverage, Reason::reason},
#include "harness/verdict/missed.def"
#undef CUAUDIT_MISSED
};

inline constexpr std::string_view kReasonGroups[] = {
#define CUAUDIT_REASON(...)
#define CUAUDIT_REASON_GROUP(name, about) about,
#include "harness/verdict/reasons.def"
#undef CUAUDIT_REASON_GROUP
#undef CUAUDIT_REASON
};

struct ReasonRow {
  std::string_view name;
  ReasonGroup group;
  std::string_view text, coverage, advice;
};
inline constexpr ReasonRow kReasons[] = {
#define CUAUDIT_REASON_GROUP(...)
#define CUAUDIT_REASON(name, id, group, text, coverage, advice) {id, ReasonGroup::group, text, coverage, advice},
#include "harness/verdict/reasons.def"
#undef CUAUDIT_REASON
#undef CUAUDIT_REASON_GROUP
};

struct NameRow {
  std::string_view name;
};
inline constexpr NameRow kIsolations[] = {{""}, {"fork"}, {"spawn"}, {"cycle"}, {"in_process"}};

constexpr std::span<const VerdictRow> RowsOf(Verdict) { return kVerdicts; }
constexpr std::span<const MissedRow> RowsOf(Missed) { return kMissed; }
constexpr std::span<const ReasonRow> RowsOf(Reason) { return kReasons; }
constexpr std::span<const NameRow> RowsOf(Isolation) { return kIsolations; }
constexpr std::span<const RuleRow> RowsOf(Rule) { return kRules; }

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
#include "harness/verdict/verdicts.def"
#undef CUAUDIT_VERDICT
}  // namespace verdict_column
inline constexpr std::optional<Verdict> kVerdictOfRule[] = {
#define CUAUDIT_RULE(name, id, level, verdict, ...) verdict_column::verdict,
#include "harness/ledger/rules.def"
#undef CUAUDIT_RULE
};

// What an entry of a report with that rule amounts to; its trial may amount to something worse.
constexpr std::optional<Verdict> VerdictOf(Rule rule) { return kVerdictOfRule[static_cast<std::size_t>(rule)]; }

// `words` with `of` in the place of {}.
inline std::string Filled(std::string_view words, std::string_view of) {
  std::string filled(words);
  const std::size_t at = filled.find("{}");
  if (at != std::string::npos) filled.replace(at, 2, of);
  return filled;
}

// A reason, and the part of its text that varies.
struct Because {
  Reason reason = Reason::None;
  std::string of = {};

  bool operator==(const Because&) const = default;
};
// How often something was left out, by reason.
using Tally = std::map<Reason, std::uint64_t>;
using TallyInWords = std::map<std::string, std::uint64_t>;

// Why a trial ran in nothing faster: one for each way that it could not run in.
using Fallback = std::vector<Because>;

inline std::string Words(const Because& why) { return why.reason == Reason::None ? std::string() : Filled(Row(why.reason).text, why.of); }
inline std::string Words(Reason reason, std::string of = {}) { return Words(Because{reason, std::move(of)}); }
inline void Count(Reason reason, std::uint64_t count, TallyInWords* to) { (*to)[Words(reason)] += count; }
inline void Count(const Tally& tally, TallyInWords* to) {
  for (const auto& [reason, count] : tally) Count(reason, count, to);
}
inline std::string Words(const Fallback& fallback) {
  std::string words;
  for (const Because& why : fallback) words += (words.empty() ? "" : "; ") + Words(why);
  return words;
}

}  // namespace cuaudit::harness
