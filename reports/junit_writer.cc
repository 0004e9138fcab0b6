// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cstddef>
#include <ostream>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/audit_defects.h"
#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/frames.h"
#include "reports/message.h"
#include "reports/writers.h"

namespace cuaudit::report {
namespace {

void Set(pugi::xml_node node, const char* name, std::string_view value) { node.append_attribute(name).set_value(ForXml(value).c_str()); }

void SetText(pugi::xml_node node, std::string_view value) { node.text().set(ForXml(value).c_str()); }

void Property(pugi::xml_node properties, std::string_view name, std::string_view value) {
  pugi::xml_node property = properties.append_child("property");
  Set(property, "name", name);
  Set(property, "value", value);
}

void AppendStack(const std::vector<Frame>& stack, std::string* text) {
  for (const Frame& frame : ShownFrames(stack)) *text += "  " + Describe(frame) + "\n";
}

// Used instead of pugi::xml_writer_stream, which must be linked against the C++ library that pugixml was built with.
class StreamWriter final : public pugi::xml_writer {
 public:
  explicit StreamWriter(std::ostream* out) : out_(out) {}
  void write(const void* data, std::size_t bytes) override {
    out_->write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }

 private:
  std::ostream* out_;
};

std::string Body(const Finding& finding) {
  std::string text;
  if (!finding.title.empty()) text += finding.title + (finding.detail.empty() ? "" : ": " + finding.detail) + "\n";
  if (!finding.acquired.call.empty()) {
    text += "acquired by " + finding.acquired.call + "\n";
    AppendStack(finding.acquired.stack, &text);
  }
  if (!finding.where.empty()) {
    text += "seen at " + finding.where + "\n";
    AppendStack(finding.where_stack, &text);
  }
  if (!finding.other.call.empty()) {
    text += std::string(words::OtherCallOf(finding.rule).is) + " " + finding.other.call + "\n";
    AppendStack(finding.other.stack, &text);
  }
  if (finding.fault) {
    text += "failing call " + finding.fault->text + "\n";
    AppendStack(finding.fault->stack, &text);
  }
  for (const Fault& fault : finding.then) {
    text += "then " + fault.text + "\n";
    AppendStack(fault.stack, &text);
  }
  if (!finding.shrunk_from.empty()) {
    text += "shrunk from";
    for (const std::string& fault : finding.shrunk_from) text += " " + fault;
    text += "\n";
  }
  if (!finding.reproduce.empty()) text += "reproduce: " + finding.reproduce + "\n";
  return text;
}

// The finding that shows the defect, and one line for each other one.
std::string Body(const Run& run, const Defect& defect) {
  std::string text = BlameOf(run, defect);
  if (!text.empty()) text += "\n";
  for (const TakenFor& one : defect.taken_for) text += Describe(run, defect, one) + "\n";
  if (defect.suppressed && defect.suppressed->expired) text += SuppressionOf(defect) + "\n";
  if (!defect.released.call.empty()) {
    text += "without the fault " + defect.released.call + "\n";
    AppendStack(defect.released.stack, &text);
  }
  text += Body(RootOf(run, defect));
  bool first = true;
  for (const Member& member : defect.members) {
    for (const std::size_t finding : member.findings) {
      if (!first) text += "with it " + Headline(run.findings[finding]) + "\n";
      first = false;
    }
  }
  return text;
}

void Skip(pugi::xml_node test, std::string_view message) { Set(test.append_child("skipped"), "message", message); }

// `how`: "failure" or "error".
pugi::xml_node Fail(pugi::xml_node test, const char* how, std::string_view type, std::string_view message) {
  pugi::xml_node failed = test.append_child(how);
  Set(failed, "type", type);
  Set(failed, "message", message);
  return failed;
}

void SystemOut(pugi::xml_node test, std::string_view text) { SetText(test.append_child("system-out"), text); }

struct Counter {
  const char* name;
  const char* child;  // that a test of this sort has
  std::size_t count = 0;
};
using SuiteCounts = std::array<Counter, 4>;

// The tests of a suite; `all` is the sum of all suites.
void SetCounts(pugi::xml_node node, SuiteCounts* all) {
  for (Counter& one : *all) {
    const auto counted = [&](pugi::xml_node test) { return one.child == nullptr || test.child(one.child); };
    const pugi::xml_object_range<pugi::xml_named_node_iterator> tests = node.children("testcase");
    const auto count = static_cast<std::size_t>(std::count_if(tests.begin(), tests.end(), counted));
    Set(node, one.name, std::to_string(count));
    one.count += count;
  }
}

// The reports of one case.
struct Suite {
  pugi::xml_node node;
  const std::string& case_name;

  pugi::xml_node Case(Mode mode, std::string_view group, std::string_view name) {
    pugi::xml_node test = node.append_child("testcase");
    const std::string of = case_name.empty() ? "" : case_name + ".";
    Set(test, "classname", "cuaudit." + of + std::string(Name(mode)) + "." + std::string(group));
    Set(test, "name", name);
    Set(test, "time", "0");
    return test;
  }

  // The name ends in the fingerprint, so that it is the same from run to run and a CI system can follow the defect.
  pugi::xml_node Case(Mode mode, Rule rule, const std::string& kind, const std::string& fingerprint) {
    std::string name = kind.empty() ? std::string(words::Name(rule)) : kind;
    if (!fingerprint.empty()) name += " " + fingerprint;
    return Case(mode, words::Name(rule), name);
  }
};

// What a run or a case that proves nothing is: in error where that fails, otherwise skipped, so that nothing says it passed.
void AppendNothingProved(std::string_view type, std::string_view message, bool fails, pugi::xml_node test) {
  if (fails) Fail(test, "error", type, message);
  else Skip(test, std::string(type) + ": " + std::string(message));
}

void AppendOutcome(const Run& run, const Audit& audit, Suite* suite) {
  const bool ended = Proves(run) || !run.outcome;
  const std::string message = MessageLine(run);
  const bool not_run_fails = FailsOn(audit, Change::NotRun);
  pugi::xml_node test = suite->Case(run.mode, "outcome", "outcome");
  if (!ended) {
    AppendNothingProved(OutcomeName(run), message.empty() ? OutcomeName(run) : message, not_run_fails, test);
  } else {
    const bool told = run.outcome == Outcome::Clean || run.outcome == Outcome::Left;
    SystemOut(test, told && !message.empty() ? message : OutcomeName(run));
  }
  const std::string cut = CutShort(run);
  if (cut.empty()) return;
  test = suite->Case(run.mode, "outcome", "cut_short");
  if (ended && audit.comparison && !ProvesAll(run) && not_run_fails) Fail(test, "error", "not_run", cut);
  else Skip(test, cut);
}

// A defect fails, but for one that a suppression accepts, and one that the policy of the comparison does not fail on.
void AppendDefect(const Run& run, const Defect& defect, bool fails, Suite* suite) {
  const Finding& root = RootOf(run, defect);
  pugi::xml_node test = suite->Case(run.mode, root.rule, root.kind, defect.fingerprint);
  const std::string change = defect.change == Change::None ? "" : std::string(words::Row(defect.change).title) + ": ";
  if (fails && !IsSuppressed(defect)) {
    SetText(Fail(test, "failure", words::Name(root.rule), change + Headline(run, defect)), Body(run, defect));
    return;
  }
  Skip(test, (IsSuppressed(defect) ? SuppressionOf(defect) + "; " : change) + Headline(run, defect));
  SystemOut(test, Body(run, defect));
}

void AppendCases(const Run& run, const Audit& audit, Suite* suite) {
  for (const Defect& defect : run.defects) AppendDefect(run, defect, Fails(audit, defect), suite);
  static constexpr std::array<Verdict, 4> kPassing = {Verdict::Pass, Verdict::Absorbed, Verdict::Benign, Verdict::RetainedForRetry};
  for (const Verdict verdict : kPassing) {
    const auto found = run.totals.verdicts.find(verdict);
    if (found == run.totals.verdicts.end() || found->second == 0) continue;
    SystemOut(suite->Case(run.mode, "verdict", words::Name(verdict)), std::to_string(found->second) + " trials");
  }
  if (run.meters) {
    for (const Meter& row : run.meters->rows) {
      if (row.grows) continue;
      SystemOut(suite->Case(run.mode, "meter", row.name),
                "no growth; would have seen >= " + std::to_string(row.detectable) + " bytes a cycle");
    }
    for (const auto& [name, why] : run.meters->absent) Skip(suite->Case(run.mode, "meter", name), words::Words(why));
  }
  for (const Finding& note : run.notes) {
    pugi::xml_node test = suite->Case(run.mode, note.rule, note.kind, note.fingerprint);
    Skip(test, Headline(note));
    if (const std::string body = Body(note); !body.empty()) SystemOut(test, body);
  }
}

// `prefix` tells the reports of one case apart: "sweep."
void AppendProperties(const Run& run, const std::string& prefix, pugi::xml_node properties) {
  const auto add = [&](const std::string& name, std::string_view value) { Property(properties, prefix + name, value); };
  add("driver", run.driver.kind == DriverKind::Simulated ? "simulated" : Name(run.driver.kind));
  add("driver_version", run.driver.version);
  add("device", run.driver.device);
  if (!run.driver.runtime.empty()) add("runtime", run.driver.runtime);
  if (!run.driver.world.empty()) add("world", run.driver.world);
  if (run.driver.kernels) {
    add("kernels.hosted", std::to_string(run.driver.kernels->hosted));
    add("kernels.idle", std::to_string(run.driver.kernels->idle));
    add("kernels.mismatched", std::to_string(run.driver.kernels->mismatched));
  }
  for (const Replayed& fault : run.faults) add(fault.code_chosen ? "fault.code_chosen" : "fault", fault.text);
  add("scope", run.scope);
  std::string probes;
  for (const std::string& probe : run.host.probes) probes += (probes.empty() ? "" : ",") + probe;
  if (!probes.empty()) add("host.probes", probes);
  for (const auto& [probe, why] : run.host.left_out) add("host.left_out." + probe, words::Words(why));
  add("outcome", OutcomeName(run));
  add("tool_version", run.tool_version);
  add("calls", std::to_string(run.totals.calls));
  add("trials", std::to_string(run.totals.trials));
  add("fired", std::to_string(run.totals.fired));
  for (const auto& [verdict, count] : Words(run.totals.verdicts)) add("verdict." + verdict, std::to_string(count));
  for (const auto& [reason, count] : Words(run.totals.skipped)) add("skipped." + reason, std::to_string(count));
  for (const auto& [reason, count] : Words(run.totals.pruned)) add("pruned." + reason, std::to_string(count));
  if (run.coverage) {
    add("coverage.reached", std::to_string(run.coverage->reached));
    add("coverage.reachable", std::to_string(run.coverage->reachable));
    add("coverage.pruned", std::to_string(run.coverage->pruned));
  }
  if (run.totals.recovered != 0) add("recovery_checked", std::to_string(run.totals.recovered));
  if (run.totals.shrinking != 0) add("shrinking_runs", std::to_string(run.totals.shrinking));
}

// Reports of one case, and what of it was not run, and why.
struct Reported {
  std::string case_name;
  std::vector<const Run*> runs;
  std::string not_run;  // empty: all of it was run
};

std::string SuiteName(const Reported& part) {
  if (!part.case_name.empty() || part.runs.empty()) return "cuaudit " + part.case_name;
  const Run& run = *part.runs.front();
  return "cuaudit " + std::string(Name(run.mode)) + (run.command.empty() ? "" : ": " + ForShell(run.command));
}

void AppendSuite(const Reported& part, const Audit& audit, pugi::xml_node root, SuiteCounts* all) {
  pugi::xml_node node = root.append_child("testsuite");
  Set(node, "name", SuiteName(part));
  pugi::xml_node properties = node.append_child("properties");
  for (const Run* const run : part.runs) {
    AppendProperties(*run, part.runs.size() == 1 ? "" : std::string(Name(run->mode)) + ".", properties);
  }
  Suite suite{node, part.case_name};
  for (const Run* const run : part.runs) {
    AppendOutcome(*run, audit, &suite);
    AppendCases(*run, audit, &suite);
  }
  if (!part.not_run.empty()) {
    AppendNothingProved("not_run", part.not_run, FailsOn(audit, Change::NotRun), suite.Case(Mode::Unknown, "outcome", "outcome"));
  }
  SetCounts(node, all);
  Set(node, "time", "0");
  if (!part.runs.empty() && !part.runs.front()->generated.empty()) Set(node, "timestamp", part.runs.front()->generated);
}

// What only the base has: a fixed defect passes, one that nobody looked for is skipped, unless the policy fails on them.
void AppendComparison(const Audit& audit, pugi::xml_node root, SuiteCounts* all) {
  const Comparison& comparison = *audit.comparison;
  static const std::string kName = "comparison";
  pugi::xml_node node = root.append_child("testsuite");
  Set(node, "name", "cuaudit comparison with " + comparison.base);
  Suite suite{node, kName};
  for (const Gone& gone : comparison.gone) {
    const std::string of = gone.case_name.empty() ? "" : gone.case_name + " ";
    pugi::xml_node test = suite.Case(gone.mode, gone.rule, of + std::string(words::Name(gone.rule)), gone.fingerprint);
    const std::string why = gone.change == Change::Fixed ? "fixed" : "not run: " + gone.because;
    if (FailsOn(audit, gone.change)) {
      SetText(Fail(test, "failure", words::Name(gone.change), why), gone.title);
    } else if (gone.change == Change::Fixed) {
      SystemOut(test, "fixed: " + gone.title);
    } else {
      Skip(test, why);
      SystemOut(test, gone.title);
    }
  }
  for (const NotProved& one : comparison.not_run) {
    AppendNothingProved("not_run", "the base has it: " + one.why, FailsOn(audit, Change::NotRun),
                        suite.Case(one.mode, "outcome", one.case_name.empty() ? "outcome" : one.case_name));
  }
  SetCounts(node, all);
  Set(node, "time", "0");
}

bool WriteParts(std::string_view name, const std::vector<Reported>& parts, const Audit& audit, std::ostream& out) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  Set(declaration, "version", "1.0");
  Set(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  Set(root, "name", name);
  SuiteCounts all = {{{"tests", nullptr}, {"failures", "failure"}, {"errors", "error"}, {"skipped", "skipped"}}};
  for (const Reported& part : parts) AppendSuite(part, audit, root, &all);
  if (audit.comparison) AppendComparison(audit, root, &all);
  for (const Counter& one : all) Set(root, one.name, std::to_string(one.count));
  StreamWriter writer(&out);
  document.save(writer, "  ", pugi::format_default, pugi::encoding_utf8);
  out.flush();
  return out.good();
}

}  // namespace

bool WriteJunit(const Run& run, std::ostream& out) { return WriteParts("cuaudit", {Reported{"", {&run}, ""}}, Audit(), out); }

bool WriteJunit(const Audit& audit, std::ostream& out) {
  std::vector<Reported> parts;
  for (const Case& one : audit.cases) {
    Reported& part = parts.emplace_back(Reported{one.name, {}, {}});
    if (const std::string_view what = NotRun(one); !what.empty()) part.not_run = std::string(what) + ": " + WhyNotRun(one);
    for (const Run& run : one.runs) part.runs.push_back(&run);
  }
  // A cause that several cases show fails in each of them, so the counts are larger than the number of defects.
  const bool alone = audit.cases.size() == 1 && audit.cases.front().name.empty();
  const std::string name = alone ? "cuaudit" : "cuaudit: " + Headline(audit, TallyOf(audit, ListDefects(audit)));
  return WriteParts(name, parts, audit, out);
}

}  // namespace cuaudit::report
