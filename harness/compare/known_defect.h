// SPDX-License-Identifier: MIT
// known_defect.h: what a comparison knows of a defect: its name, and what is still the same when the program was rewritten around it.
//
// A report has all of it, and so has a line of a baseline file. Functions are named as in the source, without parameters; files and lines
// are no part of it.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/audit.h"

namespace cuaudit::harness {

using words::Detail;
using words::Details;

// A way to fail in one function of the program.
struct FailingWay {
  std::string call;
  std::string code;
  std::string how;
  bool unwinding = false;    // fails on the way back from another fault
  std::string function;      // innermost function of the program; empty: unknown, and for calls on the way back
  std::uint64_t places = 1;  // number of places in the function

  auto operator<=>(const FailingWay&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};

// The same way, whatever the number of places.
inline bool IsSameWay(FailingWay one, const FailingWay& other) {
  one.places = other.places;
  return one == other;
}

// "cuMemAlloc=OUT_OF_MEMORY,refuse in open_device", without the number of places.
std::string Describe(const FailingWay& way);

// How much of a kind one trial loses.
struct Amount {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

// What the audit looked at that showed a defect. Empty, or 0: unknown, as in an old baseline file, or none.
struct ShownBy {
  std::string driver;                 // "sim"
  std::string world;                  // options of the simulated driver
  std::string scope;                  // "pinned"
  std::vector<std::string> probes;    // of the host, without which the defect does not show; in order
  std::uint64_t cycles = 0;           // of the longest run of an audit of cycles
  std::uint64_t grown = 0;            // cycles after which an audit of cycles had first seen all of it grow
  std::uint64_t faults = 0;           // of the trial with the fewest; 1 when first faults show it
  std::vector<std::string> settings;  // "--orphans=finding": those that decide what shows; in order
};

struct KnownDefect {
  std::string case_name;
  report::Mode mode = report::Mode::Unknown;
  std::string fingerprint;
  report::Rule rule{};
  std::vector<std::string> kinds;      // of what is lost, each once, in order
  std::string call;                    // that acquired it; of a wrong call the call
  std::vector<std::string> stack;      // functions of the program that led to `call`, innermost first
  std::string blame;                   // function; empty: nobody is blamed
  std::vector<FailingWay> failing;     // in order; empty: it shows without a fault
  std::map<std::string, Amount> lost;  // kind -> the most that one trial loses; empty: unknown
  ShownBy shown_by;
  std::string title;  // one line for people
  // Fingerprints of other defects of the report that have all findings of this one: some trials of a place blame one function, others
  // another one. In order.
  std::vector<std::string> beside = {};
  // How its trials of several faults fail, when first faults show it as well. In order; a baseline file does not say.
  std::vector<FailingWay> further = {};
};

// A run that proved something: what it does not show is not there.
struct KnownRun {
  std::string case_name;
  report::Mode mode = report::Mode::Unknown;

  auto operator<=>(const KnownRun&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 that it compares with
};
std::set<KnownRun> KnownRuns(const report::Audit& audit);

// The defects of one run, in its order.
std::vector<KnownDefect> KnownDefects(const std::string& case_name, const report::Run& run);

// All defects of an audit.
std::vector<KnownDefect> KnownDefects(const report::Audit& audit);

// Names of the functions that the defects and the coverage of a run speak of.
void AddFunctions(const report::Run& run, std::set<std::string, std::less<>>* names);

// "cuMemAlloc_v2" is cuMemAlloc.
std::string_view WithoutVersion(std::string_view call);

// How the command of `now`, or the environment that it was given, differs from that of `before`. Empty: it does not, or one of
// them is unknown. A program counts by its file name, and so does any other absolute path, for releases lie in folders of their own.
Details OtherCommand(const report::Run& before, const report::Run& now);

// Of the settings of a run those that decide which defects it shows, in order.
std::vector<std::string> SettingsThatShow(const report::Run& run);

// Which setting of `now` hides the defect, or lacks it and would show it. Empty: none.
Details HidingSetting(const KnownDefect& defect, const report::Run& now);

}  // namespace cuaudit::harness
