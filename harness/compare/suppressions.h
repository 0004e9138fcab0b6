// SPDX-License-Identifier: MIT
// suppressions.h: defects that somebody accepts until a day, from a file that lives in the repository.
//
//   Errors    one line with the file, the line, the column and what was expected.
//
//     [[suppression]]
//     fingerprint = "v2-0123456789abcdef"       # or at least one pattern: rule, kind, module, acquired_in, failing_call, blamed
//     reason = "the driver keeps it until 13.1"
//     owner = "ann@example.org"
//     until = 2027-03-31                        # the last day on which it holds; at most two years ahead
//
// Patterns are globs of * and ?, and all that an entry has must fit. A rule, kind or failing call that no name fits is an error, and so
// is an entry whose patterns are nothing but stars. A suppressed defect stays in the report and does not count; one whose
// entry has expired counts again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/process/status.h"
#include "reports/run.h"

namespace cuaudit::harness {

class Suppressions {
 public:
  struct Entry {
    std::string fingerprint;
    // Globs; empty: any.
    std::string rule;
    std::string kind;
    std::string module;        // file name of the library or program that made the acquiring call
    std::string acquired_in;   // function of the program that acquired the object
    std::string failing_call;  // one of the calls that fail
    std::string blamed;        // function
    std::string reason;
    std::string owner;
    std::string until;  // "2027-03-31"
    std::string place;  // "suppressions.toml:12"
  };

  Suppressions() = default;  // none
  static Result<Suppressions> Read(const std::string& path);
  // Those of --suppressions; none without a file.
  static Result<Suppressions> Given(const std::string& path);
  static Result<Suppressions> Parse(std::string_view text, const std::string& name);

  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // Marks the defects that an entry accepts, and no others: what the report says of earlier entries is dropped. `today` is "2026-11-26".
  // An entry that holds is preferred to one that has expired. A report with findings whose every defect is suppressed becomes what it is
  // without them, and one that was so has findings again when a defect is not suppressed now.
  void Apply(std::string_view today, report::Run* run);

  // Places of the entries that no Apply used, in their order.
  std::vector<std::string> Unused() const;

 private:
  static Result<Suppressions> Of(Result<std::vector<Entry>> entries);

  std::vector<Entry> entries_;
  std::vector<bool> used_;
};

// Today in UTC, or the day that CUAUDIT_TODAY names, for tests. SOURCE_DATE_EPOCH is about what a report says of itself: it must not make
// an entry hold again that has expired.
std::string Today();

// Refuses a CUAUDIT_TODAY that is no day.
Status CheckToday();

// The last day that an entry written on `today` may name: two years ahead.
std::string LastDay(std::string_view today);

// Looks again which of the suppressions that a report has in it have expired. A report whose defects were all suppressed has findings then.
void ExpireSuppressed(std::string_view today, report::Run* run);

// The outcome of a report of which a finding counts: it is left when nothing is wrong but what a run of the program has left.
report::Outcome WithFindings(const report::Run& run);

// True for a day of the calendar as "2027-03-31".
bool IsDay(std::string_view text);

// "a*b?" fits "aXXbY".
bool Fits(std::string_view glob, std::string_view text);

// The entry as a file has it, with `comment` in a line above. The strings are UTF-8: TOML has no other bytes.
std::string EntryText(const Suppressions::Entry& entry, std::string_view comment);

// Adds `entry` to the file, which is made when it does not exist. The file is replaced as a whole, and stays as it is on an error: it is
// wrong, or has an entry for that fingerprint already.
Status AppendEntry(const std::string& path, const Suppressions::Entry& entry, std::string_view comment);

}  // namespace cuaudit::harness
