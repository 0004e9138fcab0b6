// SPDX-License-Identifier: MIT
// plain_row.h: the line of a finished trial (log_rows.h) as the numbers that it names. Most lines have nothing else, and reading these
// without a document of JSON is several times faster.
//
//   Errors    nothing for a line that has more, or another form: a reader of JSON says whether it makes sense.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

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

}  // namespace cuaudit::harness
