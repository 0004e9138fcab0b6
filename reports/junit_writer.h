// SPDX-License-Identifier: MIT
// junit_writer.h: writes a report as JUnit XML, for continuous integration.
//
// Uses only elements that the readers of Jenkins, GitLab and GitHub have in common: testsuites, testsuite, properties, testcase with
// failure, error or skipped, and system-out.
#pragma once

#include <ostream>

#include "reports/audit.h"
#include "reports/run.h"

namespace cuaudit::report {

// Writes one testsuite per run. A finding is a failed case, a passing verdict a passed case and a note a skipped case. An outcome of
// not_exercised, interrupted or error is a case in error, so that a run that proved nothing never looks green. Characters that XML
// forbids become U+FFFD. Returns false when the stream failed.
bool WriteJunit(const Run& run, std::ostream& out);

// One testsuite for each case, and one for what only the base of a comparison has. After a comparison only that is a failure or in error on
// which its policy fails (--fail-on). The rest is skipped, with its state in the message and its places in system-out; a fixed defect
// passes. A suppressed defect is skipped.
bool WriteJunit(const Audit& audit, std::ostream& out);

}  // namespace cuaudit::report
