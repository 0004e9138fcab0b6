// SPDX-License-Identifier: MIT
// The two files that a sweep leaves and reads again. First byte: a plan as it is; a plan with a digest that fits its lines, which no
// mutation would ever hit; a log of trials.
#include <cstdint>
#include <string>
#include <string_view>

#include "faults/plan/fault.h"
#include "harness/sweep/plan/plan_file.h"
#include "harness/sweep/trial_log.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

using namespace cuaudit::harness;

void CheckMessage(const Status& status) {
  Require(status.exit() == Exit::Usage, "a file that cannot be read is the user's matter");
  Require(status.message().find("input:") == 0 && status.message().find("expected ") != std::string::npos,
          "the message names the file and what was expected", status.message());
}

void TryPlan(std::string_view text) {
  const Result<PlanFile> plan = ParsePlan(text, "input");
  if (!plan.ok()) return CheckMessage(plan.status());
  const Result<PlanFile> again = ParsePlan(FormatPlan(*plan), "input");
  Require(again.ok() && *again == *plan, "a formatted plan is the same plan");
}

void TryLines(std::string_view text) {
  PlanFile plan;
  bool legal = true;
  plan.subject = text.size();
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    faults::Fault fault;
    legal = legal && faults::ParseFault(line, &fault).expected == nullptr;
    plan.faults.emplace_back(line);
    plan.sites.push_back(HashText(line));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  const Result<PlanFile> read = ParsePlan(FormatPlan(plan), "input");
  Require(read.ok() == legal, "a plan is read when all its lines are faults", read.status().message());
  if (!read.ok()) return CheckMessage(read.status());
  Require(*read == plan, "a formatted plan is the same plan");
}

void TryLog(std::string_view text) {
  const Result<TrialLogContent> log = ParseTrialLog(text, "input");
  if (!log.ok()) return CheckMessage(log.status());
  Require(log->whole_bytes <= text.size(), "what was read lies in the text");
  std::string formatted;
  LogRows rows;
  for (const TrialResult& trial : log->trials) formatted += rows.Write(trial);
  const Result<TrialLogContent> again = ParseTrialLog(formatted, "input");
  Require(again.ok(), "a formatted log can be read", again.status().message());
  std::string twice;
  LogRows other;
  for (const TrialResult& trial : again->trials) twice += other.Write(trial);
  Require(twice == formatted, "a formatted log is the same log");
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  const std::uint32_t which = input.Below(3);
  const std::string_view text = input.Rest();
  if (which == 0) cuaudit::fuzz::TryPlan(text);
  if (which == 1) cuaudit::fuzz::TryLines(text);
  if (which == 2) cuaudit::fuzz::TryLog(text);
  return 0;
}
