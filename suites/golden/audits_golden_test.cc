// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "reports/code_host_writers.h"
#include "reports/comparison_writer.h"
#include "reports/junit_writer.h"
#include "reports/markdown_writer.h"
#include "reports/sarif_writer.h"
#include "suites/golden/golden_file.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites::audits_golden_test {
namespace {

const report::SourceRoot& Root() {
  static const report::SourceRoot root(kSampleRoot);
  return root;
}

// An object with the document of each sample, so that it can be held to a schema.
template <typename Write>
std::string AsObject(Write write, const std::vector<SampleAudit>& samples = SampleAudits()) {
  std::string all = "{";
  for (const SampleAudit& sample : samples) {
    std::ostringstream out;
    EXPECT_TRUE(write(sample.audit, out)) << sample.name;
    std::string document = out.str();
    document.pop_back();
    all.append(all.size() == 1 ? "\n\"" : ",\n\"").append(sample.name).append("\": ").append(document);
  }
  return all + "\n}\n";
}

template <typename Write>
std::string InOneFile(Write write) {
  std::ostringstream out;
  for (const SampleAudit& sample : SampleAudits()) {
    out << "=== " << sample.name << "\n";
    EXPECT_TRUE(write(sample.audit, out)) << sample.name;
  }
  return out.str();
}

TEST(AuditsGolden, SarifIsWrittenAsChecked) {
  const auto write = [](const report::Audit& audit, std::ostream& out) {
    return report::WriteSarif(audit, Root(), report::SarifProfile::Full, out);
  };
  CompareWithGolden("sarif.json", AsObject(write));
}

TEST(AuditsGolden, SarifForUploadsIsWrittenAsChecked) {
  const auto write = [](const report::Audit& audit, std::ostream& out) {
    return report::WriteSarif(audit, Root(), report::SarifProfile::Github, out);
  };
  CompareWithGolden("sarif_upload.json", AsObject(write));
}

TEST(AuditsGolden, GithubIsWrittenAsChecked) {
  CompareWithGolden("github.txt", InOneFile([](const auto& audit, std::ostream& out) { return report::WriteGithub(audit, Root(), out); }));
}

TEST(AuditsGolden, GitlabIsWrittenAsChecked) {
  CompareWithGolden("gitlab.json", AsObject([](const auto& audit, std::ostream& out) { return report::WriteGitlab(audit, Root(), out); }));
}

TEST(AuditsGolden, MarkdownIsWrittenAsChecked) {
  CompareWithGolden("markdown.txt", InOneFile([](const auto& audit, std::ostream& out) { return report::WriteMarkdown(audit, out); }));
}

TEST(AuditsGolden, AComparisonIsWrittenAsChecked) {
  std::vector<SampleAudit> compared = SampleAudits();
  std::erase_if(compared, [](const SampleAudit& sample) { return !sample.audit.comparison; });
  CompareWithGolden("comparison.json",
                    AsObject([](const auto& audit, std::ostream& out) { return report::WriteComparisonJson(audit, out); }, compared));
  std::ostringstream text;
  for (const SampleAudit& sample : compared) EXPECT_TRUE(report::WriteComparisonText(sample.audit, text, false)) << sample.name;
  CompareWithGolden("comparison.txt", text.str());
}

TEST(AuditsGolden, JunitOfAReleaseIsWrittenAsChecked) {
  std::ostringstream out;
  ASSERT_TRUE(report::WriteJunit(ReleaseAudit(), out));
  CompareWithGolden("release.junit.txt", out.str());
}

}  // namespace
}  // namespace cuaudit::suites::audits_golden_test
