// SPDX-License-Identifier: MIT
#include "reports/trials_writer.h"

#include "reports/json_text.h"
#include "reports/message.h"

namespace cuaudit::report {
namespace {

void AppendDifference(const Difference& one, std::string* line) {
  *line += R"({"rule":)";
  AppendText(words::Name(one.rule), line);
  *line += R"(,"kind":)";
  AppendText(one.kind, line);
  line->append(R"(,"count":)").append(std::to_string(one.count));
  line->append(R"(,"bytes":)").append(std::to_string(one.bytes)) += '}';
}

void AppendEnd(const TrialEnd& end, std::string* line) {
  if (end.hung) {
    *line += R"(,"hung":true)";
  } else if (!end.signal.empty()) {
    *line += R"(,"signal":)";
    AppendText(end.signal, line);
  } else {
    line->append(R"(,"exit":)").append(std::to_string(end.exit));
  }
}

// Millions of lines are written, and a document for each would take longer than reading the trials.
void AppendTrial(const TrialRow& trial, std::string* line) {
  line->append(R"({"trial":)").append(std::to_string(trial.number)) += R"(,"faults":[)";
  for (const std::string& fault : trial.faults) {
    if (&fault != &trial.faults.front()) *line += ',';
    AppendText(fault, line);
  }
  line->append(R"(],"fired":)").append(trial.fired ? "true" : "false") += R"(,"verdict":)";
  AppendText(words::Name(trial.verdict), line);
  *line += R"(,"differs":[)";
  for (const Difference& one : trial.differs) {
    if (&one != &trial.differs.front()) *line += ',';
    AppendDifference(one, line);
  }
  *line += ']';
  if (trial.end) AppendEnd(*trial.end, line);
  if (!trial.fired) {
    *line += R"(,"missed":)";
    AppendText(words::Name(trial.missed), line);
  }
  if (trial.attempts > 1) line->append(R"(,"attempts":)").append(std::to_string(trial.attempts));
  *line += "}\n";
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
  std::string line;
  for (const TrialRow& trial : trials) {
    line.clear();
    AppendTrial(trial, &line);
    out << line;
  }
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
