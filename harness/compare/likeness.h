// SPDX-License-Identifier: MIT
// likeness.h: how alike two defects of two releases are, by numbers instead of names, so that many of them can be compared.
//
//   Owns      nothing of the defects: they outlive it.
//   Errors    none.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Functions that the two reports speak of.
struct FunctionNames {
  Names before;
  Names after;
};

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
  explicit Likeness(const FunctionNames& names) : names_(names) {}

  Numbered Number(const KnownDefect& defect);

  // 0 to 1. The first defect is the one of the earlier report, here and below.
  double Of(const Numbered& before, const Numbered& after) const;

  // 1 for one function, less for one that may have another name now, 0 for two functions.
  double OfFunctions(std::uint32_t before, std::uint32_t after) const;
  double OfFunctions(std::string_view before, std::string_view after) { return OfFunctions(Function(before), Function(after)); }

  // kInlined when one of the functions has gone into a neighbour in its stack, or has come out of it.
  double OfNeighbours(std::uint32_t before, const Numbered& in_before, std::uint32_t after, const Numbered& in_after) const;

  // True for a function that may have another name in the other report.
  bool MayBeRenamed(std::uint32_t function, bool is_before) const {
    return is_before ? functions_[function].gone : functions_[function].fresh;
  }

  std::uint32_t Function(std::string_view name);

 private:
  struct Row {
    bool gone = false;       // the later report does not speak of it
    bool fresh = false;      // the earlier report does not speak of it
    std::uint32_t last = 0;  // "ns::Player::open" -> open
  };
  using Table = std::map<std::string, std::uint32_t, std::less<>>;

  static std::uint32_t NumberIn(std::string_view name, Table* table);

  const FunctionNames& names_;
  Table function_numbers_;
  std::vector<Row> functions_ = {Row()};
  Table words_;
};

}  // namespace cuaudit::harness
