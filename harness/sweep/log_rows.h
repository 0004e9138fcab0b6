// SPDX-License-Identifier: MIT
// log_rows.h: finished trials as lines of text and back. What trials have in common (texts, call stacks, places, findings, endings) is
// written once, in the line of the first trial that needs it, and later lines name it by number.
//
//   Owns      its tables.
//   Threads   one thread.
//   Errors    Read returns nothing for a line that makes no sense: wrong form, unknown name, a number out of its range or that no line before
//             has defined, or rows named so often that the trials would take far more memory than the lines do.
//
// A line is a JSON object. Fields with their usual value are left out.
//
//     trial     number in the plan
//     attempt, stray   of a trial that was repeated
//     faults    per fault two numbers: its text with a '*' for the occurrence, and the occurrence
//     as        how it ended and what it amounts to
//     at        where its faults hit
//     findings, notes
//     after     how it went on after its last fault (after_fault.h)
//     way_back  its unwinding (unwinding.h). "steps" has two numbers for each call, step and occurrence, and "states" 11 characters
//     new       rows that this line adds to the tables, each with the name of its table
//
// Tables: "s" texts, "k" shapes, "f" frames, "p" places, "r" what trials amount to, "h" hits, "n" findings, "w" steps with their ways to
// fail, "a" what followed a fault.
//
// Most lines only name what others have defined. These are read as a row of numbers (PlainRow), without a document of JSON, which is
// several times faster.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/sweep/run/trial.h"

namespace cuaudit::harness {

struct PlainRow {
  std::uint64_t trial = 0;
  std::vector<std::uint64_t> faults;  // text and occurrence, by turns
  std::uint64_t as = 0;
  std::vector<std::uint64_t> at;
  std::vector<std::uint64_t> findings;
  std::vector<std::uint64_t> notes;
  std::optional<std::uint64_t> after;
};

// Reads {"trial":1,"faults":[2,3],"as":4,"at":[5]}, with findings, notes and after where there are any.
bool ReadPlainRow(std::string_view line, PlainRow* row);

class LogRows {
 public:
  // One line with its line feed. Defines what no earlier line, written or read, has defined.
  std::string Write(const TrialResult& trial);
  std::optional<TrialResult> Read(std::string_view line);

 private:
  using Json = nlohmann::ordered_json;
  enum Table : std::uint8_t { kText, kShape, kFrame, kPlace, kResult, kHit, kFinding, kStep, kAfter };
  static constexpr std::string_view kTables = "skfprhnwa";

  // A state is a hash, and would be twenty digits: six bits for each character.
  static constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  static constexpr std::size_t kStateDigits = 11;
  static std::uint64_t StateAt(std::string_view states, std::size_t at);
  static std::string Dump(const Json& json);

  std::size_t Number(Table table, const Json& content);
  const Json& Content(Table table, const Json& number) const;
  const Json& Content(Table table, std::uint64_t number) const { return contents_[table].at(number); }

  std::size_t TextRow(const std::string& text);
  std::size_t ResultRow(const TrialResult& trial);
  std::size_t HitRow(std::uint64_t key, const PlaceText& place);
  std::size_t FrameRow(const report::Frame& frame);
  std::size_t PlaceRow(const PlaceText& place);
  std::size_t AfterRow(const std::shared_ptr<const AfterFault>& after);
  std::size_t FindingRow(const TrialFindingText& finding);
  std::vector<std::uint64_t> Findings(const std::vector<TrialFindingText>& findings);
  std::vector<std::uint64_t> Hits(const TrialResult& trial);
  Json Steps(std::span<const NextFault> faults);
  Json WayBack(const Unwinding& unwinding);

  void Define(const Json& rows);
  void StandFor(std::size_t bytes);  // counts what a line stands for
  std::string Copied(const Json& json);
  std::string Text(const Json& number) { return Copied(Content(kText, number)); }
  std::string Fault(std::uint64_t text, std::uint64_t occurrence);
  const TrialResult& ResultAt(std::uint64_t number);
  report::Frame Frame(const Json& number);
  PlaceText Place(const Json& number);
  TrialFindingText FindingOf(const Json& row);
  const TrialFindingText& Finding(std::uint64_t number);
  std::shared_ptr<const AfterFault> After(std::uint64_t number);
  std::vector<NextFault> NextFaults(const Json& steps);
  Unwinding ReadWayBack(const Json& row);
  TrialResult ReadPlain(const PlainRow& row);
  TrialResult ReadTrial(const Json& row);

  std::array<std::unordered_map<std::string, std::size_t>, kTables.size()> numbers_;
  std::array<std::vector<Json>, kTables.size()> contents_;
  // What most lines name again, by keys that are cheaper to make than the rows.
  std::unordered_map<const report::Acquired*, std::pair<PlaceText, std::size_t>> written_;
  std::unordered_map<const AfterFault*, std::pair<std::shared_ptr<const AfterFault>, std::size_t>> written_after_;
  std::unordered_map<std::string, std::size_t> texts_;
  std::unordered_map<std::string, std::size_t> results_;
  std::unordered_map<std::string, std::size_t> findings_;
  std::map<std::pair<std::uint64_t, std::size_t>, std::size_t> hits_;  // by key and place
  std::vector<std::shared_ptr<const AfterFault>> read_after_;
  std::vector<std::optional<PlaceText>> read_;  // places: trials share one text
  std::vector<std::optional<TrialResult>> read_results_;
  std::vector<std::optional<TrialFindingText>> read_findings_;
  PlainRow plain_;
  Json new_ = Json::array();  // rows of the line being written
  std::uint64_t read_bytes_ = 0;
  std::uint64_t stands_for_ = 0;  // bytes in memory that the lines read so far stand for
};

}  // namespace cuaudit::harness
