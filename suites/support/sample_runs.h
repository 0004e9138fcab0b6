// SPDX-License-Identifier: MIT
// sample_runs.h: literal runs, and audits of them, whose written forms are the golden files.
//
//   Owns      nothing; each call makes a new value.
#pragma once

#include <string>
#include <vector>

#include "reports/audit.h"
#include "reports/run.h"

namespace cuaudit::suites {

struct Sample {
  std::string name;  // in the golden files
  report::Run run;
};

report::Run SweepWithFindings();
report::Run CyclesWithGrowth();
report::Run OnePlaceManyCalls();
report::Run AbandonedTrials();
report::Run LiveTable();
report::Run ProvedMisuse();
report::Run CleanSweep();
report::Run SecondFaults();  // two faults, one of them shrunk; what was pruned, what was not reached, a recovery that failed
report::Run NotExercised();
report::Run InterruptedSweep();
report::Run ReplayedFault();   // one fault given with its error, one without
report::Run HostileStrings();  // markup, control characters, bytes that are not UTF-8, shell metacharacters

std::vector<Sample> Samples();

struct SampleAudit {
  std::string name;  // in the golden files
  report::Audit audit;
};

// What --source-root is in the golden files. No such folder exists.
inline constexpr char kSampleRoot[] = "/nowhere/player";

// A release compared with the one before: new, changed and unchanged defects, a suppression that holds and one that has expired, a case
// that was not run, and what only the base has.
report::Audit ReleaseAudit();

// An audit whose every name, text and path is `text`. Its defects are of a lost object and of misuse.
report::Audit AuditOfOneText(const std::string& text);

// Texts that break careless writers: markup of each format, control characters, bytes that are not UTF-8, a name of 10 kB.
std::vector<std::string> HostileTexts();

// Each sample run as an audit of one case without a name, and those above.
std::vector<SampleAudit> SampleAudits();

}  // namespace cuaudit::suites
