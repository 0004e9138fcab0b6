// SPDX-License-Identifier: MIT
// What holds for every writer: no name breaks its format, one audit has one text, and a stream that fails is not taken for success.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "reports/comparison_text.h"
#include "reports/github_writer.h"
#include "reports/gitlab_writer.h"
#include "reports/html/html_writer.h"
#include "reports/json_writer.h"
#include "reports/junit_writer.h"
#include "reports/markdown_writer.h"
#include "reports/sarif_writer.h"
#include "reports/text_writer.h"
#include "suites/support/report_checks.h"
#include "suites/support/sample_audits.h"

namespace cuaudit::report::every_writer_test {
namespace {

std::string WhyNoJson(const std::string& text) { return nlohmann::json::accept(text) ? "" : "no JSON: " + text; }

std::string WhyNoText(const std::string& text) {
  for (const char c : text) {
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) return "a control character: " + text;
  }
  return {};
}

// Two scripts, and a third when something is plotted; the first is data.
std::string WhyNoPage(const std::string& text) {
  constexpr std::string_view kOpens = "id=\"data\">";
  std::size_t scripts = 0;
  for (std::size_t at = text.find("<script"); at != std::string::npos; at = text.find("<script", at + 1)) ++scripts;
  if (scripts != 2 && scripts != 3) return std::to_string(scripts) + " scripts";
  const std::size_t from = text.find(kOpens);
  if (from == std::string::npos) return "no data";
  const std::string_view rest = std::string_view(text).substr(from + kOpens.size());
  const std::string_view data = rest.substr(0, rest.find("</script"));
  return nlohmann::json::accept(data) ? "" : "no JSON: " + std::string(data);
}

struct Writer {
  const char* name;
  std::function<bool(const Audit& audit, std::ostream& out)> write;
  std::function<std::string(const std::string& text)> why_not;
};

std::vector<Writer> Writers() {
  using suites::WhyNoCommands;
  using suites::WhyNoIssues;
  using suites::WhyNoMarkdown;
  using suites::WhyNoSarif;
  using suites::WhyNoXml;
  static const SourceRoot root(suites::kSampleRoot);
  const auto first = [](const Audit& audit) -> const Run& { return audit.cases.front().runs.front(); };
  return {
      {"text", [=](const Audit& audit, std::ostream& out) { return WriteText(first(audit), out, {}); }, WhyNoText},
      {"json", [=](const Audit& audit, std::ostream& out) { return WriteJson(first(audit), out); }, WhyNoJson},
      {"junit", [](const Audit& audit, std::ostream& out) { return WriteJunit(audit, out); }, WhyNoXml},
      {"sarif", [](const Audit& audit, std::ostream& out) { return WriteSarif(audit, root, SarifProfile::Full, out); },
       [](const std::string& text) { return WhyNoSarif(text, false); }},
      {"upload", [](const Audit& audit, std::ostream& out) { return WriteSarif(audit, root, SarifProfile::Github, out); },
       [](const std::string& text) { return WhyNoSarif(text, true); }},
      {"github", [](const Audit& audit, std::ostream& out) { return WriteGithub(audit, root, out); }, WhyNoCommands},
      {"gitlab", [](const Audit& audit, std::ostream& out) { return WriteGitlab(audit, root, out); }, WhyNoIssues},
      {"html", [](const Audit& audit, std::ostream& out) { return WriteHtml(audit, root, out); }, WhyNoPage},
      {"comparison", [](const Audit& audit, std::ostream& out) { return WriteComparisonText(audit, out, false); }, WhyNoText},
      {"comparison.json", [](const Audit& audit, std::ostream& out) { return WriteComparisonJson(audit, out); }, WhyNoJson},
      {"markdown", [](const Audit& audit, std::ostream& out) { return WriteMarkdown(audit, out); }, WhyNoMarkdown},
      {"summary", [](const Audit& audit, std::ostream& out) { return WriteMarkdown(audit, out, {2000}); }, WhyNoMarkdown},
  };
}

std::string Write(const Writer& writer, const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(writer.write(audit, out)) << writer.name;
  return out.str();
}

TEST(EveryWriter, NoNameBreaksAFormat) {
  for (const std::string& text : suites::HostileTexts()) {
    const Audit audit = suites::AuditOfOneText(text);
    for (const Writer& writer : Writers()) EXPECT_EQ(writer.why_not(Write(writer, audit)), "") << writer.name << " of " << text;
  }
}

TEST(EveryWriter, SamplesAreWellFormed) {
  for (const suites::SampleAudit& sample : suites::SampleAudits()) {
    for (const Writer& writer : Writers())
      EXPECT_EQ(writer.why_not(Write(writer, sample.audit)), "") << writer.name << " of " << sample.name;
  }
}

TEST(EveryWriter, AnAuditIsOneText) {
  for (const Writer& writer : Writers()) {
    EXPECT_EQ(Write(writer, suites::ReleaseAudit()), Write(writer, suites::ReleaseAudit())) << writer.name;
  }
}

TEST(EveryWriter, AFailedStreamIsNoSuccess) {
  for (const Writer& writer : Writers()) {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_FALSE(writer.write(suites::ReleaseAudit(), out)) << writer.name;
  }
}

TEST(EveryWriter, AnAuditOfNothingIsWritten) {
  for (const Writer& writer : Writers()) {
    if (std::string(writer.name) == "text" || std::string(writer.name) == "json") continue;  // they write one report
    EXPECT_EQ(writer.why_not(Write(writer, Audit{})), "") << writer.name;
  }
}

// The checks themselves: each must refuse what a careless writer makes.
TEST(ReportChecks, RefuseWhatIsBroken) {
  using namespace suites;
  for (const char* const page : {"## cuaudit: 1 defect\n\n| a | b |\n| - | - |\n| <code>x|y</code> | |\n", "```text\nnever closed\n",
                                 "What: <code>a</code><script>\n", "What: <code>a\n", "# heading of a name\n", "What: <code>`a`</code>\n",
                                 "<details><summary>a</summary>\n", "What: \x1b[31m\n", "```text\n```\n```js\n```\n"}) {
    EXPECT_NE(WhyNoMarkdown(page), "") << page;
  }
  for (const char* const commands : {"::error file=a::x", "text\n", "::error title=a,b::x\n", "::error title=a::50%\n", "::debug x=1::a\n",
                                     "::error title=a::b\x1b\n"}) {
    EXPECT_NE(WhyNoCommands(commands), "") << commands;
  }
  std::string many;
  for (int i = 0; i < 11; ++i) many += "::error title=a::b\n";
  EXPECT_NE(WhyNoCommands(many), "");
  EXPECT_NE(WhyNoSarif("{", false), "");
  EXPECT_NE(WhyNoIssues("{}"), "");
  EXPECT_NE(WhyNoXml("<a>"), "");
}

}  // namespace
}  // namespace cuaudit::report::every_writer_test
