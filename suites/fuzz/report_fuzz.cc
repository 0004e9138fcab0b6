// SPDX-License-Identifier: MIT
// Reports whose names come from somebody else's files: any bytes in commands, paths, function names, messages and reproduce lines. What is
// written can be read: JSON, SARIF and GitLab's issues by nlohmann-json, JUnit by pugixml; the text steers no terminal, and no name
// becomes a command of GitHub or markup of a page.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/defect/defects.h"
#include "include/cuaudit/fuzz_input.h"
#include "reports/json_reader.h"
#include "reports/writers.h"
#include "suites/fuzz/require.h"
#include "suites/support/report_checks.h"

namespace cuaudit::fuzz {
namespace {

constexpr report::Mode kModes[] = {report::Mode::Sweep, report::Mode::Cycles, report::Mode::Run, report::Mode::Replay};
constexpr report::Outcome kOutcomes[] = {report::Outcome::Clean, report::Outcome::Findings, report::Outcome::NotExercised,
                                         report::Outcome::Error};
constexpr const char* kKinds[] = {"stream", "device_memory", "host_heap", "none"};

template <typename T, std::size_t size>
T One(FuzzInput* input, const T (&of)[size]) {
  return of[input->Below(size)];
}

// An enumerator that has a row of words.
template <typename E>
E Any(FuzzInput* input) {
  return static_cast<E>(input->Below(static_cast<std::uint32_t>(RowsOf(E{}).size())));
}

std::string Bytes(FuzzInput* input) {
  std::string text;
  for (std::uint32_t left = input->Below(24); left != 0 && !input->empty(); --left) text.push_back(static_cast<char>(input->Byte()));
  return text;
}

std::vector<report::Frame> Stack(FuzzInput* input) {
  std::vector<report::Frame> stack(input->Below(3));
  for (report::Frame& frame : stack) frame = {Bytes(input), Bytes(input), Bytes(input), static_cast<int>(input->Byte()), input->Number()};
  return stack;
}

report::Fault Fault(FuzzInput* input) {
  report::Fault fault{"cuMemAlloc", input->Byte(), "refuse", Bytes(input), Bytes(input), {}};
  fault.stack = Stack(input);
  return fault;
}

report::Finding Finding(FuzzInput* input) {
  report::Finding finding;
  finding.rule = Any<report::Rule>(input);
  finding.kind = One(input, kKinds);
  finding.title = Bytes(input);
  finding.count = input->Byte();
  if (input->Below(2) == 1) finding.fault = Fault(input);
  for (std::uint32_t left = input->Below(3); left != 0; --left) finding.then.push_back(Fault(input));
  finding.detail = Bytes(input);
  finding.acquired = {Bytes(input), Stack(input)};
  finding.where = Bytes(input);
  finding.where_stack = Stack(input);
  finding.other = {Bytes(input), Stack(input)};
  finding.fingerprint = Bytes(input);
  finding.reproduce = Bytes(input);
  return finding;
}

report::Run Run(FuzzInput* input) {
  report::Run run;
  run.mode = One(input, kModes);
  run.outcome = One(input, kOutcomes);
  run.message.told = Bytes(input);
  for (std::uint32_t left = input->Below(4); left != 0; --left) run.command.push_back(Bytes(input));
  run.driver.kind = input->Below(2) == 1 ? report::DriverKind::Simulated : report::DriverKind::Genuine;
  run.driver.path = Bytes(input);
  run.driver.device = Bytes(input);
  run.totals.verdicts[Any<report::Verdict>(input)] = input->Byte();
  const auto reason = Any<report::Reason>(input);
  run.totals.skipped[{reason, Bytes(input)}] = input->Byte();
  for (std::uint32_t left = input->Below(3); left != 0; --left) run.cycle_counts.push_back(input->Byte());
  for (std::uint32_t left = input->Below(3); left != 0; --left) {
    report::CycleRow row{One(input, kKinds), {Bytes(input), Stack(input)}, run.cycle_counts, 1, 1};
    run.cycle_rows.push_back(std::move(row));
  }
  for (std::uint32_t left = input->Below(4); left != 0; --left) run.findings.push_back(Finding(input));
  for (std::uint32_t left = input->Below(3); left != 0; --left) run.notes.push_back(Finding(input));
  // No two findings of a report have the same fingerprint.
  int number = 0;
  for (auto* const each : {&run.findings, &run.notes}) {
    for (report::Finding& finding : *each) finding.fingerprint += std::to_string(number++);
  }
  run.generated = Bytes(input);
  harness::FindDefects(&run);
  return run;
}

void TryJson(const report::Run& run) {
  std::ostringstream out;
  Require(report::WriteJson(run, out), "it is written");
  const nlohmann::json read = nlohmann::json::parse(out.str(), nullptr, false);
  Require(!read.is_discarded(), "JSON can be read", out.str());
  Require(read["findings"].size() == run.findings.size() && read["notes"].size() == run.notes.size(), "nothing of it is lost");
  std::ostringstream again;
  Require(report::WriteJson(run, again) && again.str() == out.str(), "and a report is one text");
  report::Run back;
  const std::string expected = report::ReadJson(out.str(), &back);
  Require(expected.empty(), "and is read back", expected);
  std::ostringstream third;
  Require(report::WriteJson(back, third) && third.str() == out.str(), "and written again as it was", third.str());
}

// A report that somebody has changed is read, or refused in one line.
void TryDamaged(const report::Run& run, FuzzInput* input) {
  std::ostringstream out;
  Require(report::WriteJson(run, out), "it is written");
  std::string text = out.str();
  for (std::uint32_t left = 1 + input->Below(3); left != 0 && !text.empty(); --left) {
    const std::size_t at = input->Below(static_cast<std::uint32_t>(text.size()));
    switch (input->Below(3)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(input->Byte());
        break;
      default:
        text.replace(at, 1 + input->Below(16), Bytes(input));
    }
  }
  report::Run back;
  const std::string expected = report::ReadJson(text, &back);
  Require(expected.find('\n') == std::string::npos, "a refusal is one line", expected);
  if (!expected.empty()) return;
  std::ostringstream again;
  Require(report::WriteJson(back, again) && report::WriteText(back, again, {}), "what was read can be written");
}

void TryJunit(const report::Run& run) {
  std::ostringstream out;
  Require(report::WriteJunit(run, out), "it is written");
  pugi::xml_document document;
  const std::string text = out.str();
  const pugi::xml_parse_result read = document.load_buffer(text.data(), text.size());
  Require(bool(read), "JUnit can be read", std::string(read.description()) + ": " + text);
  const pugi::xpath_node_set failed = document.select_nodes("//testcase/failure | //testcase/error");
  Require(run.findings.empty() || !failed.empty(), "findings are not green");
}

// The data of the page is cut out as a browser does it: up to the first end of a script.
void TryHtml(const report::Run& run) {
  std::ostringstream out;
  report::Audit audit;
  audit.cases.emplace_back().runs.push_back(run);
  Require(report::WriteHtml(audit, report::SourceRoot("/nowhere"), out), "it is written");
  const std::string text = out.str();
  const std::string opens = "id=\"data\">";
  const std::size_t from = text.find(opens) + opens.size();
  const nlohmann::json read = nlohmann::json::parse(text.substr(from, text.find("</script", from) - from), nullptr, false);
  Require(!read.is_discarded(), "the data of the page can be read", text);
  Require(read["findings"].size() == run.findings.size() && read["defects"].size() == run.defects.size(), "nothing of it is lost");
}

void TryText(const report::Run& run) {
  std::ostringstream out;
  Require(report::WriteText(run, out, {}), "it is written");
  for (const char one : out.str()) {
    const auto byte = static_cast<unsigned char>(one);
    Require(byte == '\n' || (byte >= 0x20 && byte != 0x7f), "the text steers no terminal", out.str());
  }
}

// A comparison and suppressions around the run, from the bytes that are left.
report::Audit AuditOf(report::Run run, FuzzInput* input) {
  for (report::Defect& defect : run.defects) {
    defect.change = static_cast<report::Change>(input->Below(static_cast<std::uint32_t>(report::Change::Fixed)));
    defect.was = Bytes(input);
    if (input->Below(3) == 0)
      defect.suppressed = report::Suppressed{Bytes(input), Bytes(input), Bytes(input), input->Below(2) == 1, Bytes(input)};
  }
  report::Audit audit;
  audit.tool_version = Bytes(input);
  audit.cases.push_back({Bytes(input), {}, {std::move(run)}, ""});
  audit.cases.push_back({Bytes(input), {}, {}, Bytes(input)});
  if (input->Below(2) == 1) {
    const report::Change change = input->Below(2) == 1 ? report::Change::Fixed : report::Change::NotRun;
    audit.comparison = report::Comparison{
        Bytes(input),
        {report::Gone{change, Bytes(input), Bytes(input), report::Mode::Sweep, Bytes(input), Any<report::Rule>(input), Bytes(input)}}};
  }
  audit.unused_suppressions = {Bytes(input)};
  return audit;
}

template <typename Write>
std::string Written(Write write) {
  std::ostringstream out;
  Require(write(out), "it is written");
  return out.str();
}

void TryAudit(const report::Audit& audit) {
  static const report::SourceRoot root("/nowhere");
  const auto holds = [](const std::string& why_not) { Require(why_not.empty(), "it is well-formed", why_not); };
  holds(suites::WhyNoXml(Written([&](std::ostream& out) { return report::WriteJunit(audit, out); })));
  holds(suites::WhyNoSarif(Written([&](std::ostream& out) { return report::WriteSarif(audit, root, report::SarifProfile::Full, out); }),
                           false));
  holds(suites::WhyNoSarif(Written([&](std::ostream& out) { return report::WriteSarif(audit, root, report::SarifProfile::Github, out); }),
                           true));
  holds(suites::WhyNoCommands(Written([&](std::ostream& out) { return report::WriteGithub(audit, root, out); })));
  holds(suites::WhyNoIssues(Written([&](std::ostream& out) { return report::WriteGitlab(audit, root, out); })));
  holds(suites::WhyNoMarkdown(Written([&](std::ostream& out) { return report::WriteMarkdown(audit, out); })));
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  const cuaudit::report::Run run = cuaudit::fuzz::Run(&input);
  cuaudit::fuzz::TryJson(run);
  cuaudit::fuzz::TryJunit(run);
  cuaudit::fuzz::TryHtml(run);
  cuaudit::fuzz::TryText(run);
  cuaudit::fuzz::TryDamaged(run, &input);
  cuaudit::fuzz::TryAudit(cuaudit::fuzz::AuditOf(run, &input));
  return 0;
}
