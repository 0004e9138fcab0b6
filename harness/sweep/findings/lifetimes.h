// SPDX-License-Identifier: MIT
// lifetimes.h: the table of what a program keeps until it ends, on purpose (`cuaudit run --lifetime FILE`).
//
//   Errors    one line that names the file, its line and what was expected.
//
// The file is text. A row is
//
//   2 stream v2-0123456789abcdef  cuStreamCreate < open_pool
//
// at most so many objects, their kind, the fingerprint of the place that acquired them, and that place for the reader, up to the end of
// the line. The fingerprint is that of the defect that the objects alone would be: it survives a rebuild and moved lines. Empty lines and
// lines that begin with # are passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"
#include "reports/run.h"

namespace cuaudit::harness {

struct Lifetime {
  std::uint64_t most = 0;
  std::string kind;
  std::string fingerprint;
  std::size_t line = 0;  // in the file, from 1
};

class Lifetimes {
 public:
  static Result<Lifetimes> Read(const std::string& file);
  static Result<Lifetimes> Parse(const std::string& file, std::string_view text);

  // Makes notes of those findings left_at_exit that the rows allow. Where more is left than a row allows, all of it stays a finding whose
  // detail says so. Returns the lines of rows to which nothing of the run belongs.
  std::vector<std::size_t> Allow(report::Run* run) const;

 private:
  std::vector<Lifetime> rows_;
};

// The table by which all findings left_at_exit of the run are allowed, in the order of the report. Called before Allow.
std::string LifetimeTable(const report::Run& run);

}  // namespace cuaudit::harness
