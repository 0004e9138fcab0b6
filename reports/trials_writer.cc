// SPDX-License-Identifier: MIT
#include "reports/trials_writer.h"

#include "reports/json_text.h"
#include "reports/message.h"

namespace cuaudit::report {
namespace {

std::string DifferenceText(const Difference& one) {
  return JsonLine().Add("rule", words::Name(one.rule)).Add("kind", one.kind).Add("count", one.count).Add("bytes", one.bytes).Take();
}

std::string Quoted(const std::string& text) {
  std::string quoted;
  AppendText(text, &quoted);
  return quoted;
}

std::string TrialText(const TrialRow& trial) {
  JsonLine line;
  line.Add("trial", trial.number).AddRaw("faults", ListText(trial.faults, Quoted)).AddRaw("fired", trial.fired ? "true" : "false");
  line.Add("verdict", words::Name(trial.verdict)).AddRaw("differs", ListText(trial.differs, DifferenceText));
  if (trial.end && trial.end->hung) line.AddRaw("hung", "true");
  else if (trial.end && !trial.end->signal.empty()) line.Add("signal", trial.end->signal);
  else if (trial.end) line.Add("exit", trial.end->exit);
  if (!trial.fired) line.Add("missed", words::Name(trial.missed));
  if (trial.attempts > 1) line.Add("attempts", trial.attempts);
  return line.Take();
}

}  // namespace

bool WriteTrials(const Run& run, std::span<const TrialRow> trials, std::ostream& out) {
  const bool whole = run.outcome != Outcome::Interrupted && run.outcome.has_value();
  out << OnOneLine(Json{{"schema", kTrialsSchema},
                        {"tool_version", run.tool_version},
                        {"mode", Name(run.mode)},
                        {"driver", Name(run.driver.kind)},
                        {"world", run.driver.world},
                        {"command", run.command},
                        {"trials", trials.size()},
                        {"whole", whole}})
      << '\n';
  for (const TrialRow& trial : trials) out << TrialText(trial) << '\n';
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
