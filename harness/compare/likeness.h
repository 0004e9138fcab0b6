// SPDX-License-Identifier: MIT
// likeness.h: how alike two defects of two releases are, by numbers instead of names, so that many of them can be compared.
//
//   Owns      nothing of the defects: they outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/known_defect.h"

namespace cuaudit::harness {

// The least likeness of two defects that are one: 0 is nothing in common, 1 is everything.
inline constexpr double kAlike = 0.6;

// How far a function with another name may be the same one.
inline constexpr double kMoved = 0.9;    // into or out of a class or namespace
inline constexpr double kRenamed = 0.7;  // the old name is gone, the new name is new
inline constexpr double kInlined = 0.6;  // a neighbour in the stack: inlined, or split

using Names = std::set<std::string, std::less<>>;

// Functions that one of the two reports speaks of.
struct FunctionNames {
  Names all;
  Names calling;  // those that call the driver themselves: a report has all of these, and others only when a stack has them
  std::map<FailingWay, std::uint64_t> tried;  // at how many places each way to fail was tried; the keys have no number of places
};
struct BothNames {
  FunctionNames before;
  FunctionNames after;
  bool only_defects = false;  // the base is a baseline file: it may have had functions that it does not speak of
};

// What a run, or a defect of a baseline file, knows of them.
void AddNames(const report::Run& run, FunctionNames* names);
void AddNames(const KnownDefect& defect, FunctionNames* names);

// A defect with a number for each name. 0 stands for an empty name.
struct Numbered {
  const KnownDefect* defect = nullptr;
  report::Rule loss{};  // orphaned objects are lost ones
  std::uint32_t call = 0;
  std::uint32_t blame = 0;
  std::vector<std::uint32_t> stack;
  std::vector<std::uint32_t> kinds;    // in order, each once
  std::vector<std::uint32_t> failing;  // the same
  std::uint32_t front() const { return stack.empty() ? 0 : stack.front(); }
};

class Likeness {
 public:
  explicit Likeness(const BothNames& names) : names_(names) {}

  Numbered Number(const KnownDefect& defect);

  // 0 to 1. The first defect is the one of the earlier report, here and below.
  double Of(const Numbered& before, const Numbered& after) const;

  // 1 for one function, less for one that may have another name now, 0 for two functions.
  double OfFunctions(std::uint32_t before, std::uint32_t after) const;
  double OfFunctions(std::string_view before, std::string_view after) { return OfFunctions(Function(before), Function(after)); }

  // False when the two defects are told apart by the functions that acquire or that are blamed. Another function may be blamed only when
  // one of the two functions is missing on the other side and what led to the acquisition is the same; functions that are on both sides are
  // two. So are those that may have been there without being named.
  bool MayBeOne(const Numbered& before, const Numbered& after) const;

  // True when they would be one, were it known that the blamed function has another name now.
  bool InDoubt(const Numbered& before, const Numbered& after) const;

  // True when the shorter stack is what is left of the longer one without some of its functions: they were inlined, or split off.
  bool SameWay(const Numbered& before, const Numbered& after) const;

  // kInlined when one of the functions has gone into a neighbour in its stack, or has come out of it.
  double OfNeighbours(std::uint32_t before, const Numbered& in_before, std::uint32_t after, const Numbered& in_after) const;

  // True for a function that may have another name in the other report.
  bool MayBeRenamed(std::uint32_t function, bool is_before) const {
    return is_before ? functions_[function].gone : functions_[function].fresh;
  }

  std::uint32_t Function(std::string_view name);

 private:
  struct Row {
    bool gone = false;          // the later report does not speak of it
    bool fresh = false;         // the earlier report does not speak of it
    bool surely_gone = false;   // and it would
    bool surely_fresh = false;  // the same
    std::uint32_t last = 0;     // "ns::Player::open" -> open
  };
  using Table = std::map<std::string, std::uint32_t, std::less<>>;

  // Signs that both have, of those that either has.
  double Signs(const Numbered& before, const Numbered& after) const;
  // False when the two defects are told apart by the functions that acquire.
  bool MayAcquire(const Numbered& before, const Numbered& after) const;
  // True when a function that is taken for the blamed one may as well be a neighbour of it that failed in the same callee.
  bool MayBeNeighbours(const Numbered& before, const Numbered& after) const;

  static std::uint32_t NumberIn(std::string_view name, Table* table);

  const BothNames& names_;
  Table function_numbers_;
  std::vector<Row> functions_ = {Row()};
  Table words_;
};

}  // namespace cuaudit::harness
