// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "reports/json_writer.h"
#include "reports/junit_writer.h"
#include "reports/text_writer.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::suites::reports_golden_test {
namespace {

void Compare(const std::string& name, const std::string& written) {
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
  EXPECT_EQ(written, golden) << path << " differs; suites/golden/README.md tells how to renew it";
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
  Compare("all.json", all + "\n}\n");
}

using Written = bool (*)(const Sample& sample, std::ostream& out);
std::string InOneFile(Written write) {
  std::ostringstream out;
  for (const Sample& sample : Samples()) {
    out << "=== " << sample.name << "\n";
    EXPECT_TRUE(write(sample, out)) << sample.name;
  }
  return out.str();
}

TEST(ReportsGolden, JunitIsWrittenAsChecked) {
  Compare("junit.txt", InOneFile([](const Sample& sample, std::ostream& out) { return report::WriteJunit(sample.run, out); }));
}

TEST(ReportsGolden, TextIsWrittenAsChecked) {
  Compare("text.txt", InOneFile([](const Sample& sample, std::ostream& out) { return report::WriteText(sample.run, out, {}); }));
}

TEST(ReportsGolden, ColouredTextIsWrittenAsChecked) {
  std::ostringstream out;
  ASSERT_TRUE(report::WriteText(SweepWithFindings(), out, {.colour = true}));
  Compare("sweep_with_findings.colour.txt", out.str());
}

}  // namespace
}  // namespace cuaudit::suites::reports_golden_test
