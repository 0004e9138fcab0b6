// SPDX-License-Identifier: MIT
// looked_for.h: whether a new audit looked for a defect of the base that it does not show.
//
//   Owns      nothing: both runs outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/compare/known_defect.h"
#include "reports/audit.h"

namespace cuaudit::harness {

const report::Case* CaseOf(const report::Audit& audit, const std::string& name);
const report::Run* RunOf(const report::Case* of, report::Mode mode);

// Why the run of that mode is not in the new audit. `now`: null: the case is gone.
std::string WhyNotThere(const report::Case* now, report::Mode mode);

// One run of the new audit, and the same of the base.
class LookedFor {
 public:
  // `now` and `before` may be null.
  LookedFor(const report::Case* now, const report::Run* before, report::Mode mode);

  // Why nobody looked for the defect, in words. Empty: somebody did, so it is fixed.
  std::string WhyNot(const KnownDefect& defect) const;

 private:
  using WayKey = std::tuple<std::string, std::string, std::string, bool>;
  using TriedPlaces = std::map<WayKey, std::map<std::string, std::uint64_t>>;  // way -> function -> number of places in it
  // A way to fail that was not tried, and the functions that lead to it.
  using RowKey =
      std::tuple<std::string, std::string, std::string, std::string, bool, report::Reason, report::Missed, std::vector<std::string>>;
  struct NamesSeen {
    bool some = false;  // a function of the program has one
    bool any = false;   // there is something that could have one
  };

  // True when `function` of the new report may be the one that the base calls `before`. Empty: unknown.
  bool MayBe(const std::string& function, const std::string& before) const;
  static NamesSeen NamesOf(const report::Run& run);
  static TriedPlaces TriedIn(const report::Coverage& coverage);
  static RowKey KeyOf(const report::NotReached& row);

  Details WhyNotTried(const KnownDefect& defect) const;
  Details WhyPlaceNotTried(const FailingWay& way) const;
  bool TriesAsManyPlaces(const FailingWay& way) const;
  Details WhyGivenUp(const FailingWay& way) const;
  Details WhyPairsNotTried(const KnownDefect& defect) const;
  Details WhyNotReplayed(const KnownDefect& defect) const;
  Details WhyNotSeen(const KnownDefect& defect) const;
  Details WhyTooFewCycles(const KnownDefect& defect) const;
  Details WhyNotNamed(const KnownDefect& defect) const;
  Details WhyNotAcquired(const KnownDefect& defect) const;

  const report::Run* const run_;
  const report::Run* const before_;
  std::string why_;                                  // nothing of the run was looked for
  TriedPlaces tried_;                                // in the new report
  TriedPlaces tried_before_;                         // in that of the base; empty: one of them does not say
  std::map<RowKey, std::int64_t> more_not_reached_;  // rows that the new report has more than that of the base; empty: it has no rows
  std::set<std::string> renamed_;                    // functions of the base that have another name in the new report
  NamesSeen names_now_;
  NamesSeen names_before_;
  std::uint64_t most_faults_ = 0;  // of a trial of the run
};

}  // namespace cuaudit::harness
