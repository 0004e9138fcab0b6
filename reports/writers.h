// SPDX-License-Identifier: MIT
// writers.h: writes reports and audits, one function for each format. Trials (trials_writer.h) have a header of their own.
//
//   Errors    each function returns false when the stream failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "reports/audit.h"
#include "reports/run.h"
#include "reports/source_root.h"

namespace cuaudit::report {

// Text, for the person at the terminal. Control characters in strings are shown escaped.
struct TextOptions {
  bool colour = false;
  bool findings = false;  // below the defects list each finding, those that differ only in the failing call as one
};

bool WriteText(const Run& run, std::ostream& out, const TextOptions& options);

// An audit of a lifecycle in C++, as the test that made it knows it.
struct LifecycleAudit {
  std::string name;
  std::string says;                              // why there are no findings, in one line
  std::string driver;                            // in words; empty: none was opened
  std::string drift;                             // first call in which two fault-free runs differ; empty: they are equal
  std::map<std::string, std::uint64_t> skipped;  // by reason
  std::vector<std::string> unmetered;            // host resources that were not audited, each with the reason
};

// The failure message of a test: the report without what the test itself tells and without notes.
std::string LifecycleText(const Run& run, const LifecycleAudit& audit);

// JSON, for programs. reports/schema/report.schema.json describes every key.
//
// The keys have one fixed order, so that two reports can be compared line by line. Keys are never left out, apart from `message`,
// `interrupted`, `faults`, `lifecycle`, `coverage` and rare keys of a finding. `header` comes last and holds what may differ between
// equal runs. A growth per cycle has no fraction when it is a whole number. Strings that are not UTF-8 get U+FFFD in place of each bad
// byte.
bool WriteJson(const Run& run, std::ostream& out);
inline constexpr char kJsonSchema[] = "cuaudit.report/1";

// JUnit XML, for continuous integration.
//
// Uses only elements that the readers of Jenkins, GitLab and GitHub have in common: testsuites, testsuite, properties, testcase with
// failure, error or skipped, and system-out.
//
// Writes one testsuite per run. A finding is a failed case, a passing verdict a passed case and a note a skipped case. An outcome of
// not_exercised, interrupted or error is a case in error, so that a run that proved nothing never looks green. Characters that XML
// forbids become U+FFFD.
bool WriteJunit(const Run& run, std::ostream& out);

// One testsuite for each case, and one for what only the base of a comparison has. After a comparison only that is a failure or in error on
// which its policy fails (--fail-on). The rest is skipped, with its state in the message and its places in system-out; a fixed defect
// passes. A suppressed defect is skipped.
bool WriteJunit(const Audit& audit, std::ostream& out);

// Markdown, for a comment, a wiki or the step summary of a GitHub workflow.
//
// What changed since the base comes first, then a row for each report, then the defects of each case: a table, and for each defect a fold
// with its stacks and the command that shows it again.
struct MarkdownOptions {
  // The page stops before it has more bytes, and says how much is missing. GitHub shows no step summary of more than 1 MiB.
  std::size_t most_bytes = static_cast<std::size_t>(-1);
};
bool WriteMarkdown(const Audit& audit, std::ostream& out, const MarkdownOptions& options = {});

// SARIF 2.1.0, the form that code scanning services and editors read.
//
// One run of the tool, one result for each defect. The full form also has notes, what is suppressed and what the base has and this audit
// no longer shows. GitHub closes an alert that is missing from an upload, so the form for uploads has what counts today and nothing else,
// and gives each result a file, because GitHub refuses one without. Bytes that are not UTF-8 become U+FFFD; in names of files they are
// percent-encoded.
//
// Sources: OASIS SARIF 2.1.0; GitHub, "SARIF support for code scanning".
enum class SarifProfile : std::uint8_t { Full, Github };
bool WriteSarif(const Audit& audit, const SourceRoot& root, SarifProfile profile, std::ostream& out);

// Workflow commands of GitHub Actions, one on each line.
//
// What is new or not compared is an error, what the base has too is a notice, and what proves nothing is a warning. GitHub shows ten of
// each level for one step, so there are never more; a notice says how many are missing. Suppressed defects have none.
//
// Source: GitHub, "Workflow commands for GitHub Actions"; the escapes are those of @actions/core.
bool WriteGithub(const Audit& audit, const SourceRoot& root, std::ostream& out);

// A code quality report of GitLab (artifacts:reports:codequality), one issue for each defect.
//
// GitLab compares by fingerprint with the report of the target branch. A suppressed defect is an issue of the lowest severity. A defect
// without a known source line stands at the first line of its module, because GitLab drops an issue without a file. Bytes that are not
// UTF-8 become U+FFFD.
//
// Source: GitLab, "Code Quality", section "Implement a custom tool".
bool WriteGitlab(const Audit& audit, const SourceRoot& root, std::ostream& out);

// One HTML file that shows itself: no other file, no network.
//
// The report is one JSON element in the page, and html/page/*.js draws it. Whatever bytes a name has, it stays inside that element and
// reaches the page as text. Lines of source files below the root are taken along when the files are still where the debug information says
// (html/place_table.h), so the same audit gives the same bytes as long as those files do not change. An audit from an archive was made with
// the files of another machine, and has none.
bool WriteHtml(const Audit& audit, const SourceRoot& root, std::ostream& out);

// An audit that was compared with a base, as text and as JSON (schema/comparison.schema.json).
//
// Text for people: what is new first, then what changed and what nobody looked for, and the numbers of the rest.
bool WriteComparisonText(const Audit& audit, std::ostream& out, bool colour);

inline constexpr char kComparisonSchema[] = "cuaudit.comparison/1";
bool WriteComparisonJson(const Audit& audit, std::ostream& out);

}  // namespace cuaudit::report
