// SPDX-License-Identifier: MIT
// junit_writer.h: a report as JUnit XML, for continuous integration.
//
//   Owns      nothing; borrows the run and the stream for the call.
//   Threads   safe on different streams.
//   Errors    false when the stream failed. Characters that XML forbids become U+FFFD.
//   Faults    makes no driver calls.
//   Source    the elements that Jenkins, GitLab and GitHub readers agree on: testsuites, testsuite, properties, testcase with
//             failure, error or skipped, system-out.
#pragma once

#include <ostream>

#include "reports/run.h"

namespace cuaudit::report {

// One testsuite per run. A finding is a failed case, a verdict that passes is a passed case, a note is a skipped case, and an outcome of
// not_exercised or error is a case in error: a run that proved nothing never looks green.
bool WriteJunit(const Run& run, std::ostream& out);

}  // namespace cuaudit::report
