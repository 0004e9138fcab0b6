// SPDX-License-Identifier: MIT
// What the writers say of an audit that was compared with a base: numbers of each case, what was taken for what, and what fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/json_reader.h"
#include "reports/message.h"
#include "reports/writers.h"
#include "suites/support/sample_runs.h"

namespace cuaudit::report::comparison_writers_test {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

template <typename Write>
std::string Written(const Write& write) {
  std::ostringstream out;
  EXPECT_TRUE(write(out));
  return out.str();
}

std::string Text(const Audit& audit) {
  return Written([&](std::ostream& out) { return WriteComparisonText(audit, out, false); });
}
Json ComparisonJson(const Audit& audit) {
  return Json::parse(Written([&](std::ostream& out) { return WriteComparisonJson(audit, out); }));
}
Json Sarif(const Audit& audit) {
  const SourceRoot root(suites::kSampleRoot);
  return Json::parse(Written([&](std::ostream& out) { return WriteSarif(audit, root, SarifProfile::Full, out); }))["runs"][0];
}

// One case with two defects, compared.
Audit Two(Change first, Change second) {
  Audit audit;
  audit.cases.push_back({"player", {}, {suites::SweepWithFindings()}, ""});
  audit.comparison = Comparison{"base", {}};
  audit.cases[0].runs[0].defects[0].change = first;
  audit.cases[0].runs[0].defects[1].change = second;
  return audit;
}

TEST(Taken, EveryFormatNamesTheFunctionOfTheBase) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  audit.cases[0].runs[0].defects[0].taken_for = {{Taken::Renamed, "open_device", "v2-0123456789abcdef"}};
  const std::string was = "taken for open_device of the base (function renamed), v2-0123456789abcdef: open_device -";  // '>' is escaped
  const std::string says = was + "> make_stream src/picture.c:61, where picture_alloc src/picture.c:131 is blamed";
  const SourceRoot root(suites::kSampleRoot);
  EXPECT_THAT(Text(audit), AllOf(HasSubstr("\nunchanged, by another fingerprint:\n  player, sweep: "), HasSubstr("\n     " + says + "\n")));
  EXPECT_THAT(Written([&](std::ostream& out) { return WriteMarkdown(audit, out); }),
              HasSubstr("Compared: <code>taken for open_device of the base "));
  EXPECT_THAT(Written([&](std::ostream& out) { return WriteHtml(audit, root, out); }), HasSubstr(was));
  EXPECT_THAT(Written([&](std::ostream& out) { return WriteJunit(audit, out); }), HasSubstr(was));
  EXPECT_THAT(Written([&](std::ostream& out) { return WriteGithub(audit, root, out); }), HasSubstr("%0A" + says + "%0A"));
  EXPECT_THAT(Json::parse(Written([&](std::ostream& out) { return WriteGitlab(audit, root, out); }))[0]["description"].get<std::string>(),
              HasSubstr(" Compared: " + says + "."));
  EXPECT_EQ(Sarif(audit)["results"][0]["properties"]["takenFor"][0], says);
  EXPECT_EQ(ComparisonJson(audit)["defects"][0]["taken_for"],
            Json::parse(R"([{"why": "renamed", "function": "open_device", "fingerprint": "v2-0123456789abcdef"}])"));
  const std::string report = Written([&](std::ostream& out) { return WriteJson(audit.cases[0].runs[0], out); });
  report::Run read;
  ASSERT_EQ(ReadJson(report, &read), "");
  EXPECT_EQ(Describe(read, read.defects[0], read.defects[0].taken_for.at(0)), says);
  EXPECT_EQ(Written([&](std::ostream& out) { return WriteJson(read, out); }), report);
  EXPECT_EQ(ReadJson(report.substr(0, report.find("\"renamed\"")) + "\"guessed\"" + report.substr(report.find("\"renamed\"") + 9), &read),
            "defects[0].taken_for[0].why: expected why it is taken for one of the base (renamed, moved, ...)");
}

TEST(Taken, AChangedDefectSaysSoWhereItIsTold) {
  Audit audit = Two(Change::Changed, Change::Unchanged);
  audit.cases[0].runs[0].defects[0].taken_for = {{Taken::Moved, "", "v2-1"}};
  EXPECT_THAT(Text(audit), AllOf(HasSubstr("  1. changed "), HasSubstr("\n     taken for v2-1 of the base (function moved into or out of"),
                                 Not(HasSubstr("unchanged, by another"))));
}

TEST(Taken, ManyAreCutInTextOnly) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  report::Run& run = audit.cases[0].runs[0];
  run.defects[0].taken_for = {{Taken::Renamed, "open_device", "v2-1"}};
  run.defects.assign(30, run.defects[0]);
  EXPECT_THAT(Text(audit), HasSubstr("  … and 10 more (--format json has all)\n"));
  EXPECT_EQ(ComparisonJson(audit)["defects"][29]["taken_for"].size(), 1U);
}

TEST(Counts, OfEachCaseStandBelowTheSum) {
  Audit audit = suites::ReleaseAudit();
  audit.comparison->not_run.push_back({"mixer", Mode::Sweep, "the case is gone"});
  const std::string text = Text(audit);
  EXPECT_THAT(text, AllOf(HasSubstr("\n  case          new  changed  not run   fixed  unchanged  suppressed  expired\n"),
                          HasSubstr("\n  player          1        1        1       0          0           1        0\n"),
                          HasSubstr("\n  encoder         0        0        1       1          0           0        0\n"),
                          HasSubstr("\n  decoder         0        0        1       0          0           0        0\n"),
                          HasSubstr("\n  scaler          0        0        0       0          1           0        1\n"),
                          HasSubstr("\n  mixer           0        0        1       0          0           0        0\n")))
      << text;
  const Json json = ComparisonJson(audit);
  ASSERT_EQ(json["cases"].size(), audit.cases.size() + 1);
  Json sum = Json::object();
  for (const Json& one : json["cases"]) {
    for (const auto& [key, count] : one["counts"].items()) sum[key] = sum.value(key, 0) + count.get<int>();
  }
  EXPECT_EQ(sum, json["counts"]);
  EXPECT_EQ(json["cases"].back()["case"], "mixer");
  EXPECT_THAT(Text(Two(Change::New, Change::New)), Not(HasSubstr("suppressed  expired\n"))) << "one case is the sum";
}

std::string Markdown(const Audit& audit) {
  return Written([&](std::ostream& out) { return WriteMarkdown(audit, out); });
}

TEST(Counts, AnExpiredSuppressionIsOneOfThem) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  audit.cases[0].runs[0].defects[0].suppressed = Suppressed{"r", "o", "2026-01-01", true, "s.toml:1"};
  EXPECT_THAT(Text(audit),
              testing::StartsWith("cuaudit compare: 0 new, 0 changed, 0 not run, 0 fixed, 2 unchanged, 1 suppression has expired\n"));
  EXPECT_EQ(ComparisonJson(audit)["counts"]["expired"], 1);
  EXPECT_EQ(ComparisonJson(audit)["cases"][0]["counts"]["expired"], 1);
  EXPECT_THAT(Markdown(audit), HasSubstr("2 unchanged; 1 suppression has expired\n"));
}

// A case that is gone, one that has no cycles any more, one that was interrupted, and a defect that nobody looked for in one that was not.
TEST(Counts, WhatWasNotRunIsCountedOnce) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  const std::string here = audit.cases[0].name;
  const std::string why = "interrupted by SIGINT";
  report::Run cut = suites::NotExercised();
  cut.message = {};
  cut.message.told = why;
  audit.cases.push_back({"cut", {}, {cut}, why});
  const auto gone = [](const std::string& of, Mode mode, const char* fingerprint) {
    return Gone{Change::NotRun, "why", of, mode, fingerprint, Rule::Leak, "1 stream"};
  };
  audit.comparison->gone = {gone("away", Mode::Sweep, "v2-1"), gone("away", Mode::Cycles, "v2-2"), gone(here, Mode::Cycles, "v2-3"),
                            gone("cut", Mode::Sweep, "v2-4"), gone(here, Mode::Sweep, "v2-5")};
  audit.comparison->not_run = {{"away", Mode::Sweep, "the case is gone"},
                               {"away", Mode::Cycles, "the case is gone"},
                               {here, Mode::Cycles, "the case has no cycles"}};
  const std::string text = Text(audit);
  EXPECT_THAT(text, testing::StartsWith("cuaudit compare: 0 new, 0 changed, 4 not run, 0 fixed, 2 unchanged\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("\n  cut: interrupted by SIGINT\n"), Not(HasSubstr("\n  cut, sweep: interrupted")),
                          HasSubstr("\n  away: the case is gone\n"), HasSubstr("fingerprint v2-2\n")));
  const Json counts = ComparisonJson(audit)["counts"];
  EXPECT_EQ(counts["not_run"], 4);
  EXPECT_EQ(counts["not_proved"], 3);
  EXPECT_THAT(Markdown(audit), testing::StartsWith("## cuaudit: 2 defects: 2 unchanged; 4 not run\n"));
  EXPECT_THAT(Markdown(audit), AllOf(HasSubstr("| <code>away</code> | | <code>the case is gone</code> |"), Not(HasSubstr("away, sweep"))));
}

// Its findings are known, and do not stand for what nobody tried.
TEST(Counts, FindingsDoNotHideWhatWasNotTried) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  report::Run& run = audit.cases[0].runs[0];
  run.totals.skipped[{Reason::BeyondLimit}] = 3;
  EXPECT_THAT(Text(audit),
              AllOf(HasSubstr(" 0 not run, "), HasSubstr("\ncut short:\n  player, sweep: 3 trials left out beyond --limit\n")));
  EXPECT_THAT(NothingProved(audit), testing::IsEmpty()) << "without findings it is clean";
  run.totals.skipped.clear();
  EXPECT_THAT(Text(audit), Not(HasSubstr("cut short")));
  const std::string gap = "shard 2 of round 1 is missing, with 3 trials";
  run.message.told = gap;
  EXPECT_THAT(Text(audit), AllOf(HasSubstr(" 1 not run, "), HasSubstr("\nnot run:\n  player, sweep: in part: " + gap + "\n")));
  EXPECT_EQ(ComparisonJson(audit)["not_proved"], Json::parse(R"([{"case": "player", "mode": "sweep", "why": "in part: )" + gap + "\"}]"));
  const auto errors = [&] {
    pugi::xml_document document;
    document.load_string(Written([&](std::ostream& out) { return WriteJunit(audit, out); }).c_str());
    return document.select_nodes("//testcase[@name='cut_short']/error").size();
  };
  const SourceRoot root(suites::kSampleRoot);
  const auto github = [&] { return Written([&](std::ostream& out) { return WriteGithub(audit, root, out); }); };
  EXPECT_EQ(errors(), 1U);
  EXPECT_THAT(github(), HasSubstr("::error title=cuaudit%3A player%3A in part::"));
  audit.comparison->fail_on = {Change::New};
  EXPECT_EQ(errors(), 0U);
  EXPECT_THAT(github(), HasSubstr("::warning title=cuaudit%3A player%3A in part::"));
  audit.cases[0].not_run = gap;
  EXPECT_EQ(NothingProved(audit).size(), 1U) << "said once";
  audit.cases[0].not_run = "the budget was spent";
  EXPECT_EQ(NothingProved(audit).size(), 2U);
  run.message.untried = Part{3, 40};
  EXPECT_EQ(NothingProved(audit).size(), 2U) << "the case gives another reason";
  audit.cases[0].not_run = kUntried;
  EXPECT_EQ(NothingProved(audit).size(), 1U) << "said once";
}

// Whatever would keep a report without findings from being clean keeps one with findings from proving all.
TEST(Counts, EachPartThatNobodySawIsNotRun) {
  const std::pair<void (*)(Message*), std::string> parts[] = {
      {[](Message* message) { message->told = "shard 2 is missing"; }, "shard 2 is missing"},
      {[](Message* message) {
         message->untried = Part{3, 40};
       },
       "the budget was spent before each place was tried once, after 3 of 40 trials"},
      {[](Message* message) { message->nothing = NothingPlanned::NothingChosen; }, "--call or --limit left no fault to try"},
      {[](Message* message) {
         message->never_fired = {{{Missed::Unfired, 3}}, 40, "/tmp/w", {}, 0};
       },
       "3 of 40 planned faults never fired: 3 not called again"},
      {[](Message* message) {
         message->abandoned = Part{2, 40};
       },
       "2 of 40 trials abandoned at exit, and heap blocks were not looked at: --host tells whether they unwound, --abandoned-is-leak "
       "reports what they left"},
      {[](Message* message) {
         message->coverage = Part{875, 900};
       },
       "fault coverage is 87.5 %, wanted at least 90.0 % (--coverage-at-least)"},
      {[](Message* message) {
         message->undecided = Undecided{1, 160};
       },
       "1 place grew, and these cycles do not tell a leak from a cache that fills: 160 cycles would"},
      {[](Message* message) {
         message->bad_end = BadEnd{"exited with status 3", 0};
       },
       "the program exited with status 3, expected exit status 0 (--expect-exit)"},
  };
  for (const auto& [set, why] : parts) {
    Audit audit = Two(Change::Unchanged, Change::Unchanged);
    ASSERT_THAT(NothingProved(audit), testing::IsEmpty());
    set(&audit.cases[0].runs[0].message);
    EXPECT_THAT(Text(audit), AllOf(HasSubstr(" 1 not run, "), HasSubstr("\nnot run:\n  player, sweep: in part: " + why + "\n")));
    EXPECT_EQ(ComparisonJson(audit)["counts"]["not_run"], 1) << why;
    EXPECT_EQ(CutShort(audit.cases[0].runs[0]), why);
  }
  Audit chosen = Two(Change::Unchanged, Change::Unchanged);
  chosen.cases[0].runs[0].message.chosen = Part{3, 40};
  EXPECT_THAT(NothingProved(chosen), testing::IsEmpty()) << "on purpose, and clean without findings";
}

TEST(Counts, AHostileNameStaysInItsRow) {
  for (const std::string& name : suites::HostileTexts()) {
    const std::string text = Text(suites::AuditOfOneText(name));
    EXPECT_EQ(text.find_first_of("\x1b\r\t"), std::string::npos) << text.substr(0, 300);
  }
}

struct Parsed {
  explicit Parsed(const Audit& audit) {
    document.load_string(Written([&](std::ostream& out) { return WriteJunit(audit, out); }).c_str());
  }
  std::size_t Count(const char* path) const { return document.select_nodes(path).size(); }
  pugi::xml_document document;
};

TEST(Policy, JunitFailsOnlyOnWhatTheComparisonFailsOn) {
  Audit audit = Two(Change::New, Change::Unchanged);
  audit.comparison->gone = {Gone{Change::Fixed, "", "player", Mode::Sweep, "v2-1", Rule::Leak, "1 stream"},
                            Gone{Change::NotRun, "the case is gone", "player", Mode::Sweep, "v2-2", Rule::Leak, "1 event"}};
  audit.comparison->not_run = {{"mixer", Mode::Cycles, "the case is gone"}};
  audit.cases.push_back({"probe", {}, {suites::NotExercised()}, ""});
  audit.cases.push_back({"decoder", {}, {}, "its program is not there"});
  const Parsed by_default(audit);
  EXPECT_EQ(by_default.Count("//failure"), 2U) << "new, and the defect that nobody looked for";
  EXPECT_EQ(by_default.Count("//error"), 3U);
  EXPECT_EQ(by_default.Count("//testcase[system-out]/skipped[starts-with(@message, 'unchanged: ')]"), 1U) << "known, with its places";
  audit.comparison->fail_on = {};
  const Parsed on_nothing(audit);
  EXPECT_EQ(on_nothing.Count("//failure"), 0U);
  EXPECT_EQ(on_nothing.Count("//error"), 0U);
  EXPECT_EQ(on_nothing.Count("//skipped[starts-with(@message, 'new: ')]"), 1U);
  EXPECT_EQ(on_nothing.Count("//skipped[starts-with(@message, 'not_run: ')]"), 2U) << "and nothing of it passed";
  EXPECT_EQ(on_nothing.document.child("testsuites").attribute("skipped").as_uint(), on_nothing.Count("//skipped"));
  audit.comparison->fail_on = {Change::Unchanged, Change::Fixed};
  const Parsed on_others(audit);
  EXPECT_EQ(on_others.Count("//failure"), 2U);
  EXPECT_EQ(on_others.Count("//failure[@type='fixed']"), 1U);
}

TEST(Policy, AnExpiredSuppressionFailsUnderEveryPolicyButNone) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  audit.cases[0].runs[0].defects[0].suppressed = Suppressed{"r", "o", "2026-01-01", true, "s.toml:1"};
  audit.comparison->fail_on = {Change::New};
  EXPECT_EQ(Parsed(audit).Count("//failure"), 1U);
  audit.comparison->fail_on = {};
  EXPECT_EQ(Parsed(audit).Count("//failure"), 0U);
}

TEST(Policy, GithubShowsAsErrorsWhatFails) {
  const SourceRoot root(suites::kSampleRoot);
  Audit audit = Two(Change::Changed, Change::Unchanged);
  const auto says = [&] { return Written([&](std::ostream& out) { return WriteGithub(audit, root, out); }); };
  EXPECT_THAT(says(), AllOf(HasSubstr("::error "), HasSubstr("::notice ")));
  audit.comparison->fail_on = {Change::New};
  EXPECT_THAT(says(), Not(HasSubstr("::error ")));
  audit.comparison->gone = {Gone{Change::NotRun, "why", "a", Mode::Sweep, "v2-2", Rule::Leak, "1 event"},
                            Gone{Change::Fixed, "", "a", Mode::Sweep, "v2-3", Rule::Leak, "1 stream"}};
  audit.comparison->not_run = {{"mixer", Mode::Cycles, "the case is gone"}};
  audit.cases.push_back({"probe", {}, {suites::NotExercised()}, ""});
  audit.cases.push_back({"decoder", {}, {}, "its program is not there"});
  for (const char* const level : {"::warning ", "::error "}) {
    EXPECT_THAT(says(), AllOf(HasSubstr(std::string(level) + "title=cuaudit%3A not run%3A v2-2::"),
                              HasSubstr(std::string(level) + "title=cuaudit%3A not run%3A mixer::"),
                              HasSubstr(std::string(level) + "title=cuaudit%3A probe%3A nothing is proved::"),
                              HasSubstr(std::string(level) + "title=cuaudit%3A not run%3A decoder::")));
    audit.comparison->fail_on = {Change::NotRun};
  }
  EXPECT_THAT(says(), Not(HasSubstr("v2-3")));
  audit.comparison->fail_on = {Change::Fixed};
  EXPECT_THAT(says(), HasSubstr("::error title=cuaudit%3A fixed%3A v2-3::1 stream\n"));
}

TEST(SarifBaseline, NamesTheBaseByItsResults) {
  Audit base = Two(Change::None, Change::None);
  base.comparison.reset();
  Audit head = Two(Change::Unchanged, Change::Unchanged);
  head.comparison->base_guid = GuidOf(ResultKeysOf(base));
  const Json run = Sarif(head);
  EXPECT_EQ(run["baselineGuid"], Sarif(base)["automationDetails"]["guid"]);
  EXPECT_FALSE(Sarif(base).contains("baselineGuid"));
  EXPECT_THAT(run["baselineGuid"].get<std::string>(),
              testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  Audit other = base;
  other.cases[0].runs[0].defects.pop_back();
  EXPECT_NE(GuidOf(ResultKeysOf(other)), GuidOf(ResultKeysOf(base)));
  other = base;
  std::swap(other.cases[0].runs[0].defects[0], other.cases[0].runs[0].defects[1]);
  EXPECT_EQ(GuidOf(ResultKeysOf(other)), GuidOf(ResultKeysOf(base))) << "whatever the order";
  head.comparison->base_guid = "\"}</script>";
  EXPECT_FALSE(Sarif(head).contains("baselineGuid")) << "it comes from a file of somebody else";
}

TEST(SarifBaseline, WhatAnotherCaseStillShowsIsNotAbsent) {
  Audit audit = Two(Change::Unchanged, Change::Unchanged);
  const std::string fingerprint = audit.cases[0].runs[0].defects[0].fingerprint;
  const auto gone = [](Change change, const std::string& of, const std::string& name) {
    return Gone{change, change == Change::Fixed ? "" : "the case is gone", of, Mode::Sweep, name, Rule::Leak, "1 stream"};
  };
  audit.comparison->gone = {gone(Change::NotRun, "c", "v2-2"), gone(Change::Fixed, "a", fingerprint), gone(Change::Fixed, "a", "v2-2"),
                            gone(Change::Fixed, "a", "v2-1"), gone(Change::Fixed, "b", "v2-1")};
  std::multiset<std::string> absent;
  const Json run = Sarif(audit);
  for (const Json& one : run["results"]) {
    if (one.value("baselineState", "") == "absent") absent.insert(one["partialFingerprints"]["cuauditDefect/v1"].get<std::string>());
  }
  EXPECT_THAT(absent, testing::ElementsAre("v2-1"));
}

}  // namespace
}  // namespace cuaudit::report::comparison_writers_test
