// SPDX-License-Identifier: MIT
#include "reports/junit_writer.h"

#include <array>
#include <cstddef>
#include <ostream>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "reports/defect_words.h"
#include "reports/escape.h"
#include "reports/message.h"
#include "reports/text_writer.h"

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

std::string Headline(const Finding& finding) {
  std::string line(words::Name(finding.rule));
  if (!finding.kind.empty()) line += ": " + std::to_string(finding.count) + " " + finding.kind;
  if (finding.bytes != 0) line += ", " + std::to_string(finding.bytes) + " bytes";
  if (finding.fault) line += (WasLost(finding.rule) ? ", lost when " : ", after ") + finding.fault->text + " failed";
  for (const Fault& fault : finding.then) line += ", and then " + fault.text;
  return line;
}

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
    text += std::string(OtherIs(finding.rule)) + " " + finding.other.call + "\n";
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

std::string Headline(const Run& run, const Defect& defect) {
  const Finding& root = RootOf(run, defect);
  std::string line = RulesOf(run, defect);
  if (const std::string amount = AmountOf(run, defect); !amount.empty()) line += ": " + amount;
  if (root.fault) line += (WasLost(root.rule) ? ", lost when " : ", after ") + root.fault->text + " failed";
  for (const Fault& fault : root.then) line += ", and then " + fault.text;
  if (defect.trials > 1) line += ", in " + std::to_string(defect.trials) + " trials";
  return line;
}

// The finding that shows the defect, and one line for each other one.
std::string Body(const Run& run, const Defect& defect) {
  std::string text = BlameOf(run, defect);
  if (!text.empty()) text += "\n";
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

struct Counter {
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
};

void SetCounts(pugi::xml_node node, const Counter& counter) {
  Set(node, "tests", std::to_string(counter.tests));
  Set(node, "failures", std::to_string(counter.failures));
  Set(node, "errors", std::to_string(counter.errors));
  Set(node, "skipped", std::to_string(counter.skipped));
}

struct Suite {
  const Run& run;
  pugi::xml_node node;
  Counter counter;

  pugi::xml_node Case(std::string_view group, std::string_view name) {
    ++counter.tests;
    pugi::xml_node test = node.append_child("testcase");
    Set(test, "classname", "cuaudit." + std::string(Name(run.mode)) + "." + std::string(group));
    Set(test, "name", name);
    Set(test, "time", "0");
    return test;
  }

  // The name ends in the fingerprint, so that it is the same from run to run and a CI system can follow the defect.
  pugi::xml_node Case(const Finding& finding, const std::string& fingerprint) {
    const std::string_view rule = words::Name(finding.rule);
    std::string name = finding.kind.empty() ? std::string(rule) : finding.kind;
    if (!fingerprint.empty()) name += " " + fingerprint;
    return Case(rule, name);
  }
};

void AppendOutcome(Suite* suite) {
  const Run& run = suite->run;
  const bool ended = run.outcome == Outcome::Clean || run.outcome == Outcome::Findings || run.outcome == Outcome::Left || !run.outcome;
  const std::string message = MessageLine(run);
  pugi::xml_node test = suite->Case("outcome", "outcome");
  if (!ended) {
    ++suite->counter.errors;
    pugi::xml_node error = test.append_child("error");
    Set(error, "type", OutcomeName(run));
    Set(error, "message", message.empty() ? OutcomeName(run) : message);
  } else {
    const bool told = run.outcome == Outcome::Clean || run.outcome == Outcome::Left;
    SetText(test.append_child("system-out"), told && !message.empty() ? message : OutcomeName(run));
  }
}

void AppendCases(Suite* suite) {
  const Run& run = suite->run;
  for (const Defect& defect : run.defects) {
    const Finding& root = RootOf(run, defect);
    if (IsSuppressed(defect)) {
      ++suite->counter.skipped;
      pugi::xml_node test = suite->Case(root, defect.fingerprint);
      Set(test.append_child("skipped"), "message", SuppressionOf(defect) + "; " + Headline(run, defect));
      SetText(test.append_child("system-out"), Body(run, defect));
      continue;
    }
    ++suite->counter.failures;
    pugi::xml_node failure = suite->Case(root, defect.fingerprint).append_child("failure");
    Set(failure, "type", words::Name(root.rule));
    Set(failure, "message", Headline(run, defect));
    SetText(failure, Body(run, defect));
  }
  static constexpr std::array<Verdict, 4> kPassing = {Verdict::Pass, Verdict::Absorbed, Verdict::Benign, Verdict::RetainedForRetry};
  for (const Verdict verdict : kPassing) {
    const auto found = run.totals.verdicts.find(verdict);
    if (found == run.totals.verdicts.end() || found->second == 0) continue;
    SetText(suite->Case("verdict", words::Name(verdict)).append_child("system-out"), std::to_string(found->second) + " trials");
  }
  if (run.meters) {
    for (const Meter& row : run.meters->rows) {
      if (row.grows) continue;
      SetText(suite->Case("meter", row.name).append_child("system-out"),
              "no growth; would have seen >= " + std::to_string(row.detectable) + " bytes a cycle");
    }
    for (const auto& [name, why] : run.meters->absent) {
      ++suite->counter.skipped;
      Set(suite->Case("meter", name).append_child("skipped"), "message", words::Words(why));
    }
  }
  for (const Finding& note : run.notes) {
    ++suite->counter.skipped;
    pugi::xml_node test = suite->Case(note, note.fingerprint);
    Set(test.append_child("skipped"), "message", Headline(note));
    if (const std::string body = Body(note); !body.empty()) SetText(test.append_child("system-out"), body);
  }
}

}  // namespace

bool WriteJunit(const Run& run, std::ostream& out) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  Set(declaration, "version", "1.0");
  Set(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("testsuites");
  Set(root, "name", "cuaudit");
  pugi::xml_node node = root.append_child("testsuite");
  Set(node, "name", "cuaudit " + std::string(Name(run.mode)) + (run.command.empty() ? "" : ": " + ForShell(run.command)));

  pugi::xml_node properties = node.append_child("properties");
  Property(properties, "driver", run.driver.kind == DriverKind::Simulated ? "simulated" : Name(run.driver.kind));
  Property(properties, "driver_version", run.driver.version);
  Property(properties, "device", run.driver.device);
  if (!run.driver.runtime.empty()) Property(properties, "runtime", run.driver.runtime);
  if (!run.driver.world.empty()) Property(properties, "world", run.driver.world);
  if (run.driver.kernels) {
    Property(properties, "kernels.hosted", std::to_string(run.driver.kernels->hosted));
    Property(properties, "kernels.idle", std::to_string(run.driver.kernels->idle));
    Property(properties, "kernels.mismatched", std::to_string(run.driver.kernels->mismatched));
  }
  for (const Replayed& fault : run.faults) Property(properties, fault.code_chosen ? "fault.code_chosen" : "fault", fault.text);
  Property(properties, "scope", run.scope);
  std::string probes;
  for (const std::string& probe : run.host.probes) probes += (probes.empty() ? "" : ",") + probe;
  if (!probes.empty()) Property(properties, "host.probes", probes);
  for (const auto& [probe, why] : run.host.left_out) Property(properties, "host.left_out." + probe, words::Words(why));
  Property(properties, "outcome", OutcomeName(run));
  Property(properties, "tool_version", run.tool_version);
  Property(properties, "calls", std::to_string(run.totals.calls));
  Property(properties, "trials", std::to_string(run.totals.trials));
  Property(properties, "fired", std::to_string(run.totals.fired));
  for (const auto& [verdict, count] : Words(run.totals.verdicts)) Property(properties, "verdict." + verdict, std::to_string(count));
  for (const auto& [reason, count] : Words(run.totals.skipped)) Property(properties, "skipped." + reason, std::to_string(count));
  for (const auto& [reason, count] : Words(run.totals.pruned)) Property(properties, "pruned." + reason, std::to_string(count));
  if (run.coverage) {
    Property(properties, "coverage.reached", std::to_string(run.coverage->reached));
    Property(properties, "coverage.reachable", std::to_string(run.coverage->reachable));
    Property(properties, "coverage.pruned", std::to_string(run.coverage->pruned));
  }
  if (run.totals.recovered != 0) Property(properties, "recovery_checked", std::to_string(run.totals.recovered));
  if (run.totals.shrinking != 0) Property(properties, "shrinking_runs", std::to_string(run.totals.shrinking));

  Suite suite{run, node, {}};
  AppendOutcome(&suite);
  AppendCases(&suite);
  SetCounts(root, suite.counter);
  SetCounts(node, suite.counter);
  Set(node, "time", "0");
  if (!run.generated.empty()) Set(node, "timestamp", run.generated);
  StreamWriter writer(&out);
  document.save(writer, "  ", pugi::format_default, pugi::encoding_utf8);
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
