// SPDX-License-Identifier: MIT
#include "reports/trials_writer.h"

#include <nlohmann/json.hpp>

#include "reports/message.h"

namespace cuaudit::report {
namespace {

using Json = nlohmann::ordered_json;

void WriteLine(const Json& json, std::ostream& out) { out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n'; }

Json ToJson(const TrialRow& trial) {
  Json json = {{"trial", trial.number}, {"faults", trial.faults}, {"fired", trial.fired}, {"verdict", words::Name(trial.verdict)}};
  Json differs = Json::array();
  for (const Difference& one : trial.differs) {
    differs.push_back(Json{{"rule", words::Name(one.rule)}, {"kind", one.kind}, {"count", one.count}, {"bytes", one.bytes}});
  }
  json["differs"] = std::move(differs);
  if (trial.end) {
    if (trial.end->hung) {
      json["hung"] = true;
    } else if (!trial.end->signal.empty()) {
      json["signal"] = trial.end->signal;
    } else {
      json["exit"] = trial.end->exit;
    }
  }
  if (!trial.fired) json["missed"] = words::Name(trial.missed);
  if (trial.attempts > 1) json["attempts"] = trial.attempts;
  return json;
}

}  // namespace

bool WriteTrials(const Run& run, std::span<const TrialRow> trials, std::ostream& out) {
  const bool whole = run.outcome != Outcome::Interrupted && run.outcome.has_value();
  WriteLine(Json{{"schema", kTrialsSchema},
                 {"tool_version", run.tool_version},
                 {"mode", Name(run.mode)},
                 {"driver", Name(run.driver.kind)},
                 {"world", run.driver.world},
                 {"command", run.command},
                 {"trials", trials.size()},
                 {"whole", whole}},
            out);
  for (const TrialRow& trial : trials) WriteLine(ToJson(trial), out);
  out.flush();
  return out.good();
}

}  // namespace cuaudit::report
