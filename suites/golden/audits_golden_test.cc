// SPDX-License-Identifier: MIT
// What the writers write of the samples of suites/support, held to files that a person has read.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites::audits_golden_test {
namespace {

// Holds what a writer wrote to a file that a person has read.

// With CUAUDIT_UPDATE_GOLDEN the file becomes what was written.
void CompareWithGolden(const std::string& name, const std::string& written) {
  const std::string path = std::string(CUAUDIT_GOLDEN_DIR) + "/reports/" + name;
  if (std::getenv("CUAUDIT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream file(path, std::ios::binary);
    file << written;
    ASSERT_TRUE(file.flush().good()) << path;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.is_open()) << path << ": golden file missing";
  const std::string golden{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_EQ(written, golden) << path << " differs; suites/README.md tells how to renew it";
}

const report::SourceRoot& Root() {
  static const report::SourceRoot root(kSampleRoot);
  return root;
}

// The document of each sample as a member of an object, so that it can be held to a schema.
template <typename Write>
std::string AsMembers(Write write, const std::string& form, const std::vector<SampleAudit>& samples = SampleAudits()) {
  std::string all;
  for (const SampleAudit& sample : samples) {
    std::ostringstream out;
    EXPECT_TRUE(write(sample.audit, out)) << sample.name;
    std::string document = out.str();
    document.pop_back();
    all.append(all.empty() ? "\n\"" : ",\n\"").append(sample.name + form).append("\": ").append(document);
  }
  return all;
}

template <typename Write>
std::string AsObject(Write write, const std::vector<SampleAudit>& samples = SampleAudits()) {
  return "{" + AsMembers(write, "", samples) + "\n}\n";
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
  const auto as = [](report::SarifProfile profile) {
    return [profile](const report::Audit& audit, std::ostream& out) { return report::WriteSarif(audit, Root(), profile, out); };
  };
  CompareWithGolden("sarif.json", "{" + AsMembers(as(report::SarifProfile::Full), "") + "," +
                                      AsMembers(as(report::SarifProfile::Github), " for uploads") + "\n}\n");
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

// An object with the report of each sample, so that it can be held to the schema.
TEST(ReportsGolden, JsonIsWrittenAsChecked) {
  std::string all = "{";
  for (const Sample& sample : Samples()) {
    std::ostringstream out;
    ASSERT_TRUE(report::WriteJson(sample.run, out));
    std::string report = out.str();
    ASSERT_EQ(report.back(), '\n');
    report.pop_back();
    all.append(all.size() == 1 ? "\n\"" : ",\n\"").append(sample.name).append("\": ").append(report);
  }
  CompareWithGolden("all.json", all + "\n}\n");
}

using RunWriter = bool (*)(const Sample& sample, std::ostream& out);
std::string RunsInOneFile(RunWriter write) {
  std::ostringstream out;
  for (const Sample& sample : Samples()) {
    out << "=== " << sample.name << "\n";
    EXPECT_TRUE(write(sample, out)) << sample.name;
  }
  return out.str();
}

TEST(ReportsGolden, JunitIsWrittenAsChecked) {
  std::ostringstream release;
  release << "=== release\n";
  EXPECT_TRUE(report::WriteJunit(ReleaseAudit(), release));
  CompareWithGolden("junit.txt", RunsInOneFile([](const Sample& sample, std::ostream& out) {
                                   return report::WriteJunit(sample.run, out);
                                 }) + release.str());
}

TEST(ReportsGolden, TextIsWrittenAsChecked) {
  std::ostringstream coloured;
  coloured << "=== sweep_with_findings in colour\n";
  EXPECT_TRUE(report::WriteText(SweepWithFindings(), coloured, {.colour = true}));
  CompareWithGolden("text.txt", RunsInOneFile([](const Sample& sample, std::ostream& out) {
                                  return report::WriteText(sample.run, out, {});
                                }) + coloured.str());
}

}  // namespace
}  // namespace cuaudit::suites::audits_golden_test
