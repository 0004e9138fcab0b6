// SPDX-License-Identifier: MIT
// What the writers for code hosts say of an audit: which defects, where, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <string>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::code_host_writers_test {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const SourceRoot& Root() {
  static const SourceRoot root(suites::kSampleRoot);
  return root;
}

Json Sarif(const Audit& audit, SarifProfile profile) {
  std::ostringstream out;
  EXPECT_TRUE(WriteSarif(audit, Root(), profile, out));
  Json log = Json::parse(out.str(), nullptr, false);
  EXPECT_FALSE(log.is_discarded()) << out.str();
  return log["runs"][0];
}

std::string Github(const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(WriteGithub(audit, Root(), out));
  return out.str();
}

Audit AuditOf(Run run) {
  Audit audit;
  audit.cases.push_back({"", {}, {std::move(run)}, ""});
  return audit;
}

// A run with `count` defects of different fingerprints.
Run ManyDefects(std::size_t count, Change change) {
  Run run = suites::SweepWithFindings();
  const Defect defect = run.defects.front();
  run.defects.assign(count, defect);
  for (std::size_t i = 0; i < count; ++i) {
    run.defects[i].fingerprint = "v1-" + std::to_string(i);
    run.defects[i].change = change;
  }
  return run;
}

std::size_t Count(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::string Gitlab(const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(WriteGitlab(audit, Root(), out));
  return out.str();
}

std::string Markdown(const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(WriteMarkdown(audit, out));
  return out.str();
}

std::string Junit(const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(WriteJunit(audit, out));
  return out.str();
}

std::string Html(const Audit& audit) {
  std::ostringstream out;
  EXPECT_TRUE(WriteHtml(audit, Root(), out));
  return out.str();
}

TEST(EveryFormat, ACaseOfWhichAPartWasLeftOutSaysSo) {
  Audit audit;
  audit.cases.push_back({"player", {}, {suites::CleanSweep()}, "cycles left out: the budget"});
  EXPECT_EQ(Headline(audit, TallyOf(audit, ListDefects(audit))), "no defects; 1 case proved nothing");
  EXPECT_THAT(Github(audit), HasSubstr("::error title=cuaudit%3A not all run%3A player::cycles left out: the budget\n"));
  EXPECT_THAT(Sarif(audit, SarifProfile::Github).dump(), HasSubstr("case player was not all run: cycles left out: the budget"));
  EXPECT_THAT(Markdown(audit), HasSubstr("| <code>player</code> | not all run | | | | | | <code>cycles left out: the budget</code> |"));
  EXPECT_THAT(Gitlab(audit), HasSubstr("Case player was not all run: cycles left out: the budget"));
  EXPECT_THAT(Html(audit), HasSubstr("\"not_run\":\"not all run: cycles left out: the budget\""));
  pugi::xml_document junit;
  ASSERT_TRUE(junit.load_string(Junit(audit).c_str()));
  EXPECT_STREQ(junit.select_node("//testcase/error/@message").attribute().value(), "not all run: cycles left out: the budget");
  EXPECT_EQ(junit.child("testsuites").attribute("errors").as_uint(), 1U);
}

TEST(EveryFormat, ASweepThatWasCutSaysSo) {
  report::Run run = suites::CleanSweep();
  run.totals.skipped = {{{Reason::OverBudget, ""}, 12}, {{Reason::BeyondLimit, ""}, 1}};
  const std::string cut = "12 trials left out when --budget was spent, 1 beyond --limit";
  EXPECT_EQ(CutShort(run), cut);
  Audit audit = AuditOf(run);
  audit.cases.push_back({"b", {}, {run}, ""});
  EXPECT_EQ(Headline(audit, TallyOf(audit, {})), "no defects; 24 trials left out when --budget was spent, 2 beyond --limit");
  audit.cases.pop_back();
  EXPECT_EQ(Github(audit), "::warning title=cuaudit%3A sweep%3A cut short::" + cut + "\n");
  EXPECT_THAT(Sarif(audit, SarifProfile::Github)["invocations"][0].dump(),
              HasSubstr("\"level\":\"warning\",\"message\":{\"text\":\"" + cut));
  EXPECT_TRUE(Markdown(audit).starts_with("## cuaudit: no defects; " + cut + "\n"));
  EXPECT_THAT(Gitlab(audit), HasSubstr("sweep: " + cut));
  EXPECT_THAT(Html(audit), HasSubstr("\"cut_short\":\"" + cut));
  EXPECT_THAT(Junit(audit), HasSubstr("<skipped message=\"" + cut));
  run.totals.skipped = {{{Reason::OverBudget, ""}, 1}};
  EXPECT_EQ(CutShort(run), "1 trial left out when --budget was spent");
  run.totals.skipped = {{{Reason::BeyondLimit, ""}, 2}};
  EXPECT_EQ(CutShort(run), "2 trials left out beyond --limit");
  EXPECT_EQ(CutShort(suites::CleanSweep()), "");
}

TEST(EveryFormat, WhatFindingsDoNotShowIsNamed) {
  Audit audit = suites::ReleaseAudit();
  report::Run& run = audit.cases.front().runs.front();
  ASSERT_EQ(run.outcome, Outcome::Findings);
  EXPECT_TRUE(Sarif(audit, SarifProfile::Github)["invocations"][0]["executionSuccessful"]);
  const std::string gap = "shard 3 of round 1 is missing, with 7 trials";
  run.message.told = gap + "\n\x1b[31m";
  const Json invocation = Sarif(audit, SarifProfile::Github)["invocations"][0];
  EXPECT_FALSE(invocation["executionSuccessful"]);
  EXPECT_EQ(invocation["exitCode"], 1);
  EXPECT_THAT(invocation.dump(), testing::AllOf(HasSubstr(gap), HasSubstr("\"level\":\"warning\"")));
  for (const std::string& page : {Github(audit), Gitlab(audit), Markdown(audit), Html(audit), Junit(audit)}) {
    EXPECT_THAT(page, HasSubstr(gap));
    EXPECT_EQ(page.find('\x1b'), std::string::npos);
  }
}

// One cause in two cases is one defect wherever a number is said.
TEST(EveryFormat, OneHeadlineForOneAudit) {
  const Audit audit = suites::ReleaseAudit();
  const std::string headline = Headline(audit, TallyOf(audit, ListDefects(audit)));
  EXPECT_TRUE(Markdown(audit).starts_with("## cuaudit: " + headline + "\n"));
  EXPECT_EQ(Sarif(audit, SarifProfile::Full)["properties"]["summary"], headline);
  EXPECT_THAT(Junit(audit), HasSubstr("<testsuites name=\"cuaudit: " + headline + "\""));
  EXPECT_THAT(Html(audit), HasSubstr("\"summary\":\"" + headline + "\""));
}

TEST(ListDefects, NewOnesComeFirstAndOneCauseIsListedOnce) {
  const Audit audit = suites::ReleaseAudit();
  const std::vector<Listed> defects = ListDefects(audit);
  ASSERT_EQ(defects.size(), 4U);
  EXPECT_EQ(defects[0].defect->change, Change::New);
  EXPECT_THAT(defects[0].cases, ElementsAre("player", "thumbnail")) << "another case has the same cause, and there it is old";
  EXPECT_EQ(defects[1].defect->change, Change::Changed);
  EXPECT_EQ(defects[2].defect->change, Change::Unchanged);
  EXPECT_TRUE(defects[2].defect->suppressed->expired) << "an expired suppression accepts nothing";
  EXPECT_TRUE(IsSuppressed(*defects[3].defect));
  EXPECT_EQ(Headline(audit, TallyOf(audit, defects)),
            "3 defects in 3 cases: 1 new, 1 changed, 1 unchanged; 1 suppression has expired; 1 suppressed; 1 fixed, 4 not run");
  EXPECT_EQ(Headline(Audit{}, Tally{}), "no defects");
}

TEST(MarkdownWriter, NumbersRunInTheOrderOfTheTables) {
  Audit audit = AuditOf(ManyDefects(2, Change::Unchanged));
  audit.cases[0].name = "a";
  report::Run later = ManyDefects(3, Change::Unchanged);  // the first two are those of the first case
  later.defects[2].change = Change::New;
  audit.cases.push_back({"b", {}, {std::move(later)}, ""});
  std::vector<int> numbers;
  std::istringstream lines(Markdown(audit));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| ") && std::isdigit(static_cast<unsigned char>(line[2])) != 0) numbers.push_back(std::stoi(line.substr(2)));
    if (line.starts_with("<details><summary>")) numbers.push_back(std::stoi(line.substr(18)));
  }
  EXPECT_THAT(numbers, ElementsAre(1, 2, 1, 2, 3, 1, 2, 3));
}

TEST(ListDefects, AnOldCaseDoesNotHideThatAnotherCaseHasItNew) {
  Audit audit = suites::ReleaseAudit();
  std::swap(audit.cases.front(), audit.cases[4]);
  const std::vector<Listed> defects = ListDefects(audit);
  EXPECT_EQ(defects[0].in->name, "player");
  EXPECT_EQ(defects[0].defect->change, Change::New);
  EXPECT_THAT(defects[0].cases, ElementsAre("thumbnail", "player"));
}

TEST(SarifWriter, TheFullFormHasStatesSuppressionsAndWhatIsFixed) {
  const Json run = Sarif(suites::ReleaseAudit(), SarifProfile::Full);
  std::map<std::string, int> states;
  int rejected = 0;
  int accepted = 0;
  for (const Json& result : run["results"]) {
    ++states[result.value("baselineState", "")];
    for (const Json& one : result.value("suppressions", Json::array())) {
      ++(one["status"] == "accepted" ? accepted : rejected);
      EXPECT_THAT(one["justification"].get<std::string>(),
                  HasSubstr(" by gpu-team: the driver's own cache, known upstream (suppressions.toml:"));
    }
  }
  EXPECT_EQ(states["new"], 1);
  EXPECT_EQ(states["updated"], 1);
  EXPECT_EQ(states["unchanged"], 2);
  EXPECT_EQ(states["absent"], 1) << "what nobody looked for is not fixed";
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(rejected, 1);
}

TEST(SarifWriter, AResultSaysWhereAndHowItCameAbout) {
  const Json result = Sarif(suites::ReleaseAudit(), SarifProfile::Full)["results"][0];
  EXPECT_EQ(result["ruleId"], "leak");
  EXPECT_EQ(result["level"], "error");
  const Json physical = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(physical["artifactLocation"]["uri"], "src/picture.c");
  EXPECT_EQ(physical["artifactLocation"]["uriBaseId"], "%SRCROOT%");
  EXPECT_EQ(physical["region"]["startLine"], 61);
  EXPECT_EQ(result["partialFingerprints"]["primaryLocationLineHash"], result["partialFingerprints"]["cuauditDefect/v1"]);
  std::vector<std::string> steps;
  for (const Json& one : result["codeFlows"][0]["threadFlows"][0]["locations"]) steps.push_back(one["location"]["message"]["text"]);
  EXPECT_THAT(steps, ElementsAre("acquired by cuStreamCreate", "cuEventCreate#2=OUT_OF_MEMORY,refuse fails",
                                 HasSubstr("returned without cuStreamDestroy"), "1 stream lost"));
  EXPECT_EQ(result["stacks"][0]["frames"].size(), 4U);
  EXPECT_EQ(result["stacks"][0]["frames"][3]["location"]["physicalLocation"]["artifactLocation"]["uri"],
            "file:///usr/include/player/main.h");
  EXPECT_EQ(result["occurrenceCount"], 2);
}

TEST(SarifWriter, AnUploadHasWhatCountsAndAFileForEach) {
  const Json run = Sarif(suites::ReleaseAudit(), SarifProfile::Github);
  EXPECT_EQ(run["results"].size(), 3U) << "neither suppressed nor fixed ones, nor notes";
  Audit nowhere = AuditOf(suites::SweepWithFindings());
  for (Finding& finding : nowhere.cases[0].runs[0].findings) {
    finding.acquired.stack = {Frame{"lib plug.so", "", "", 0, 0x77}};
    finding.fault.reset();
    finding.where_stack.clear();
  }
  for (Defect& defect : nowhere.cases[0].runs[0].defects) defect.blame.reset();
  const Json alone = Sarif(nowhere, SarifProfile::Github)["results"][0]["locations"][0];
  EXPECT_EQ(alone["physicalLocation"]["artifactLocation"]["uri"], "lib%20plug.so");
  EXPECT_EQ(alone["logicalLocations"][0]["fullyQualifiedName"], "lib plug.so+0x77");
  EXPECT_FALSE(Sarif(nowhere, SarifProfile::Full)["results"][0]["locations"][0].contains("physicalLocation"));
}

TEST(SarifWriter, WhatProvesNothingIsNoSuccess) {
  const Json run = Sarif(suites::ReleaseAudit(), SarifProfile::Full);
  int failed = 0;
  std::string notes;
  for (const Json& one : run["invocations"]) {
    failed += one["executionSuccessful"] ? 0 : 1;
    for (const Json& note : one.value("toolExecutionNotifications", Json::array()))
      notes += note["message"]["text"].get<std::string>() + "\n";
  }
  EXPECT_EQ(failed, 2) << "the case that was not exercised, and the cycles that are undecided beside what they found";
  EXPECT_THAT(notes, HasSubstr("case decoder was not run: its program"));
  EXPECT_THAT(notes, HasSubstr("nobody looked for v1-00000000000000f2 of the base in case decoder"));
  EXPECT_THAT(notes, HasSubstr("no defect matches the suppression suppressions.toml:21"));
}

TEST(GithubWriter, NewOnesAreErrorsOldOnesNoticesAndSuppressedOnesAreNotShown) {
  const std::string text = Github(suites::ReleaseAudit());
  EXPECT_THAT(text, HasSubstr("::error file=src/picture.c,line=61,title=cuaudit%2C new%3A leak%3A 1 stream::1 stream"));
  EXPECT_EQ(Count(text, "::error "), 8U) << "new, changed, one whose suppression has expired, and five that were not run: " << text;
  EXPECT_THAT(text, Not(HasSubstr("double_release")));
  EXPECT_THAT(text, HasSubstr("::error title=cuaudit%3A not run%3A decoder::its program build/decoder is not there\n"));
  const std::string old = Github(AuditOf(ManyDefects(2, Change::Unchanged)));
  EXPECT_EQ(Count(old, "::notice "), 2U);
  EXPECT_EQ(Count(old, "::error "), 0U);
  EXPECT_EQ(Github(AuditOf(suites::CleanSweep())), "");
}

TEST(GithubWriter, NoMoreThanGithubShowsAndALineForTheRest) {
  const std::string text = Github(AuditOf(ManyDefects(30, Change::New)));
  EXPECT_EQ(Count(text, "::error "), 10U);
  EXPECT_THAT(text, HasSubstr("::notice title=cuaudit::30 defects; 20 more are in the step summary\n"));
  const std::string old = Github(AuditOf(ManyDefects(30, Change::Unchanged)));
  EXPECT_EQ(Count(old, "::notice "), 10U);
  EXPECT_THAT(old, HasSubstr("; 21 more are in the step summary\n"));
}

TEST(GitlabWriter, EachDefectIsOneIssue) {
  std::ostringstream out;
  ASSERT_TRUE(WriteGitlab(suites::ReleaseAudit(), Root(), out));
  const Json issues = Json::parse(out.str());
  ASSERT_EQ(issues.size(), 8U)
      << "four defects, the case that was not run, cycles of which a place is undecided, the defect that nobody looked "
         "for, and the cycles that are gone";
  EXPECT_EQ(issues[0]["check_name"], "leak");
  EXPECT_EQ(issues[0]["severity"], "major");
  EXPECT_EQ(issues[0]["location"]["path"], "src/picture.c");
  EXPECT_EQ(issues[0]["location"]["lines"]["begin"], 61);
  EXPECT_THAT(issues[0]["description"].get<std::string>(), HasSubstr("(cases player, thumbnail)"));
  EXPECT_EQ(issues[3]["severity"], "info") << "suppressed";
  EXPECT_EQ(issues[3]["location"]["path"], "libplug.so") << "no source line is known";
  EXPECT_EQ(issues[4]["check_name"], "cut_short");
  EXPECT_THAT(issues[4]["description"].get<std::string>(), HasSubstr("player, cycles: 1 place grew, and these cycles do not tell"));
  EXPECT_EQ(issues[5]["check_name"], "not_run");
  EXPECT_EQ(issues[6]["fingerprint"], "v1-00000000000000f2") << "a merge request must not show it as fixed";
  EXPECT_EQ(issues[6]["severity"], "info");
  EXPECT_EQ(issues[6]["check_name"], "double_release");
  EXPECT_EQ(issues[6]["description"], "Nobody looked for it: 1 stream (case decoder): the case was not run");
}

TEST(JunitWriter, ACaseIsASuiteAndTheBaseHasOne) {
  std::ostringstream out;
  ASSERT_TRUE(WriteJunit(suites::ReleaseAudit(), out));
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(out.str().c_str()));
  EXPECT_EQ(document.select_nodes("//testsuite").size(), 7U);
  EXPECT_EQ(document.select_nodes("//testsuite[@name='cuaudit player']/testcase[@classname='cuaudit.player.cycles.growth']/failure").size(),
            1U);
  EXPECT_EQ(document.select_nodes("//testsuite[@name='cuaudit decoder']/testcase/error").size(), 1U);
  EXPECT_EQ(document.select_nodes("//testcase[@classname='cuaudit.player.sweep.double_release']/skipped").size(), 1U) << "suppressed";
  EXPECT_EQ(document.select_nodes("//testcase[starts-with(@classname, 'cuaudit.comparison')]").size(), 3U);
  const pugi::xml_node root = document.child("testsuites");
  EXPECT_EQ(root.attribute("failures").as_uint(), document.select_nodes("//failure").size());
  EXPECT_EQ(root.attribute("skipped").as_uint(), document.select_nodes("//skipped").size());
  EXPECT_EQ(root.attribute("tests").as_uint(), document.select_nodes("//testcase").size());
}

TEST(JunitWriter, OneReportWithoutANameIsWrittenAsEver) {
  for (const suites::Sample& sample : suites::Samples()) {
    std::ostringstream alone;
    std::ostringstream audit;
    ASSERT_TRUE(WriteJunit(sample.run, alone));
    ASSERT_TRUE(WriteJunit(AuditOf(sample.run), audit));
    EXPECT_EQ(alone.str(), audit.str()) << sample.name;
  }
}

TEST(MarkdownWriter, WhatChangedIsOnTopAndEachCauseHasOneFold) {
  std::ostringstream out;
  ASSERT_TRUE(WriteMarkdown(suites::ReleaseAudit(), out));
  const std::string page = out.str();
  EXPECT_TRUE(page.starts_with("## cuaudit: 3 defects in 3 cases: 1 new")) << page;
  EXPECT_LT(page.find("| fixed | <code>encoder</code>"), page.find("| report | outcome |"));
  EXPECT_EQ(Count(page, "<details>"), 4U);
  EXPECT_LT(page.find("1. new: "), page.find("2. changed: "));
  EXPECT_THAT(page, HasSubstr("cuaudit replay --driver=sim --fault 'cuEventCreate#2=OUT_OF_MEMORY,refuse' -- ./player --frames 30\n```\n"));
  EXPECT_THAT(page, HasSubstr("suppressions.toml:21"));
}

TEST(MarkdownWriter, APageEndsBeforeItIsTooLong) {
  const Audit audit = AuditOf(ManyDefects(500, Change::New));
  for (const std::size_t most : {std::size_t{0}, std::size_t{3000}, std::size_t{100000}}) {
    std::ostringstream out;
    ASSERT_TRUE(WriteMarkdown(audit, out, {most}));
    EXPECT_LE(out.str().size(), std::max(most, std::size_t{200}));
    EXPECT_THAT(out.str(), HasSubstr("The rest is left out"));
  }
}

TEST(Markdown, NoTextIsMarkup) {
  EXPECT_EQ(ForMarkdown("plain text, src/a_b.c:12"), "plain text, src/a_b.c:12");
  EXPECT_EQ(ForMarkdown("<b>"), "&#60;b&#62;");
  EXPECT_EQ(ForMarkdown("a|b"), "a&#124;b");
  EXPECT_EQ(ForMarkdown("__init__"), "&#95;&#95;init&#95;&#95;");
  EXPECT_EQ(ForMarkdown("https://x www.y"), "https&#58;//x www&#46;y");
  EXPECT_EQ(MarkdownCode("", 10), "");
  EXPECT_EQ(MarkdownFence("a\n````\n", "sh"), "`````sh\na\n````\n`````\n");
}

TEST(Escape, AShortenedTextEndsWithACharacter) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc…");
  EXPECT_EQ(Shortened("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
  EXPECT_EQ(Shortened("ab\xe2\x82\xac", 4), "ab…");
  EXPECT_EQ(Shortened("ab\xe2\x82\xac"
                      "c",
                      4),
            "ab…");
  EXPECT_EQ(Shortened("a\nb", 3), "a\\n…") << "what the escapes add counts";
  EXPECT_EQ(Shortened("", 0), "");
}

}  // namespace
}  // namespace cuaudit::report::code_host_writers_test
