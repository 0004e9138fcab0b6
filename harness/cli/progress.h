// SPDX-License-Identifier: MIT
// progress.h: what stderr shows: how far a command has come, and at the end of a run what is alive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/sweep/run/trial.h"
#include "reports/json_node.h"
#include "reports/run.h"

namespace cuaudit::harness {

// What stderr shows while a command goes on (--progress): a bar on a terminal, or lines.

// "[########                ]  12/35". The width is fixed, so that a line overwrites the previous one.
std::string ProgressBar(std::size_t done, std::size_t total);

// "first found, in trial 12 of 864 so far: leak of 1 stream, acquired by cuStreamCreate at Open (pool.c:12), when
// cuMemAlloc#3=OUT_OF_MEMORY,refuse". The trial has a finding. With `done` 0 it was found "in an earlier run".
std::string FirstFound(const TrialResult& trial, std::size_t done, std::size_t total);

// Lines: one every ten seconds. Plain: one for each tenth, whatever the time, so that two logs of one audit are alike.
enum class ProgressForm : std::uint8_t { Bar, Lines, Plain, None };

// The form for --progress. "auto" is a bar on a terminal, else lines.
ProgressForm FormOf(const std::string& progress, bool terminal);

// A reader that takes nothing holds nothing up: what it leaves no room for is not shown.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPause{10};  // between two lines where there is no terminal
  static constexpr std::chrono::seconds kQuiet{2};   // before a rate is shown

  explicit Progress(const std::string& progress);  // on stderr
  Progress(int to, ProgressForm form, Clock::time_point now) : to_(to), form_(form), begun_(now), last_(now) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Clear(); }  // however the command ends, nothing is written behind a bar

  // What is under way: "trials", in the case "3 of 12: pool" (empty: the only one). `after` is added to the bar: "slowest: pool, 12 s".
  // Rate and tenths begin anew.
  void Begin(const char* unit, const std::string& name = {}, const std::string& after = {}, Clock::time_point now = Clock::now());
  // Something else is counted from now on, under the same name.
  void Count(const char* unit, Clock::time_point now = Clock::now());
  // The name alone changes.
  void Rename(const std::string& name);
  void Show(std::size_t done, std::size_t total, Clock::time_point now = Clock::now());
  // A step begins, "reading field.journal", after `done` others. Plain has a line for the first one alone.
  void Step(const std::string& name, std::size_t done, std::size_t total, Clock::time_point now = Clock::now());
  void Clear();
  // The line with the name of the case in front of it.
  std::string Named(const std::string& line) const { return name_.empty() ? line : name_ + ": " + line; }

 private:
  bool Write(const std::string& text) const;
  void Line(std::size_t done, std::size_t total) const;
  std::string Rate(std::size_t done, std::size_t total, Clock::time_point now) const;

  int to_;
  ProgressForm form_ = ProgressForm::None;
  const char* unit_ = "trials";
  std::string name_;
  std::string after_;
  bool shown_ = false;
  std::size_t from_ = 0;  // done when this began: trials of an earlier sweep have no part in the rate
  bool counted_ = false;  // from_ is set
  std::size_t tenth_ = 0;
  Clock::time_point begun_;
  Clock::time_point last_;
};

// The last name of a path, short enough for a bar: of a long one the first 40 bytes, or a few less so that no character is cut, and "…".
std::string ShortName(const std::string& path);

// Shows how far the reading of a result has come. Borrows `progress`.
report::ReadSoFar ReadingOf(const std::string& path, Progress* progress);

// "4 s", "12 min", "3 h": a time in one number, rounded up.
std::string RoughTime(double seconds);

// How many objects of each kind a run acquired, released and left.

// In the order of the kinds; kinds of which nothing was acquired have no row.
std::vector<report::LiveRow> LiveTable(const Ledger& ledger);

}  // namespace cuaudit::harness
