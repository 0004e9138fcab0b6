// SPDX-License-Identifier: MIT
// Short texts of a person. First byte: the allocator's settings (CUAUDIT_ALLOC_CONF), counts of cycles (--n), bytes to detect (--detect),
// a call that may fail (--benign), ways to fail (--how), a file of suppressions, the lines of a baseline file.
#include <cstdint>
#include <string>
#include <string_view>

#include "allocator/settings.h"
#include "harness/compare/baseline.h"
#include "harness/compare/suppressions.h"
#include "harness/cycle/cycles.h"
#include "harness/cycle/meters.h"
#include "harness/sweep/findings/benign.h"
#include "harness/sweep/plan/make_plan.h"
#include "include/cuaudit/fuzz_input.h"
#include "suites/fuzz/require.h"

namespace cuaudit::fuzz {
namespace {

using namespace cuaudit::harness;

void TrySettings(std::string_view text) {
  const std::string defaults = alloc::FormatSettings(alloc::Settings());
  alloc::Settings settings;
  std::string error;
  if (!alloc::ParseSettings(text, &settings, &error)) {
    Require(error.starts_with("allocator settings: "), "what is wrong is said", error);
    Require(error.find_first_of("\n\r") == std::string::npos, "in one line", error);
    Require(alloc::FormatSettings(settings) == defaults, "a wrong text changes nothing", error);
    return;
  }
  const std::string formatted = alloc::FormatSettings(settings);
  alloc::Settings again;
  Require(alloc::ParseSettings(formatted, &again, &error), "formatted settings can be read", error);
  Require(alloc::FormatSettings(again) == formatted, "formatted settings are the same settings", formatted);
}

// What a refusal owes the person who wrote the text.
void CheckRefused(const Status& status, std::string_view flag) {
  Require(status.exit() == Exit::Usage && status.message().starts_with(flag), "what was given is named", status.message());
  Require(status.message().find("expected ") != std::string::npos, "and what was expected", status.message());
}

void TryCounts(std::string_view text) {
  const Result<std::vector<std::uint64_t>> counts = ParseCounts(text);
  if (!counts.ok()) return CheckRefused(counts.status(), "--n: ");
  std::string formatted;
  for (const std::uint64_t count : *counts) formatted += (formatted.empty() ? "" : ",") + std::to_string(count);
  const Result<std::vector<std::uint64_t>> again = ParseCounts(formatted);
  Require(again.ok() && *again == *counts && counts->size() >= 2 && counts->front() >= 1, "formatted counts are the same counts",
          formatted);
}

void TryDetect(std::string_view text) {
  const Result<std::uint64_t> bytes = ParseDetect(text);
  if (!bytes.ok()) return CheckRefused(bytes.status(), "--detect: ");
  Require((*bytes == 0) == text.empty(), "nothing is asked for by nothing alone", std::string(text));
  if (*bytes == 0 || *bytes > (std::uint64_t{1} << 40U)) return;
  const Result<std::uint64_t> again = ParseDetect(std::to_string(*bytes) + "B/cycle");
  Require(again.ok() && *again == *bytes, "and in bytes it is the same", std::string(text));
}

void TryBenign(const std::string& text) {
  const Result<Benign> benign = ParseBenign(text);
  if (!benign.ok()) return CheckRefused(benign.status(), "'" + text + "': ");
  std::string formatted = benign->call;
  if (benign->occurrence != 0) formatted += "#" + std::to_string(benign->occurrence);
  if (!benign->function.empty()) formatted += "@" + (benign->module.empty() ? "" : benign->module + "!") + benign->function;
  if (text.find("#0") == std::string::npos) Require(formatted == text, "nothing of a declaration is lost", formatted);
  const Result<Benign> again = ParseBenign(formatted);
  Require(again.ok() && again->call == benign->call && again->occurrence == benign->occurrence && again->module == benign->module &&
              again->function == benign->function,
          "and it means the same", formatted);
}

void TryHows(std::string_view text) {
  PlanOptions options;
  options.hows = {std::string(text)};
  const Status status = CheckPlanOptions(options);
  if (!status.ok()) CheckRefused(status, "--how: ");
}

void TrySuppressions(std::string_view text) {
  const Result<Suppressions> read = Suppressions::Parse(text, "s.toml");
  if (!read.ok()) {
    CheckRefused(read.status(), "s.toml:");
    Require(read.status().message().find('\n') == std::string::npos, "in one line", read.status().message());
    return;
  }
  std::string written;
  for (const Suppressions::Entry& entry : read->entries()) written += EntryText(entry, entry.reason);
  const Result<Suppressions> again = Suppressions::Parse(written, "s.toml");
  Require(again.ok() && again->entries().size() == read->entries().size(), "entries can be written again", written);
  for (std::size_t i = 0; i < read->entries().size(); ++i) {
    const Suppressions::Entry& one = read->entries()[i];
    const Suppressions::Entry& other = again->entries()[i];
    Require(one.fingerprint == other.fingerprint && one.reason == other.reason && one.until == other.until && one.blamed == other.blamed,
            "and mean the same", written);
  }
}

void TryBaseline(std::string_view text) {
  const std::string with_head = "cuaudit baseline 2\n" + std::string(text);
  const Result<Baseline> read = ParseBaseline(with_head, "base");
  if (!read.ok()) {
    CheckRefused(read.status(), "base: line ");
    Require(read.status().message().find('\n') == std::string::npos, "in one line", read.status().message());
    return;
  }
  const std::string written = BaselineText(*read);
  const Result<Baseline> again = ParseBaseline(written, "base");
  Require(again.ok() && BaselineText(*again) == written, "a baseline is written as it was read", written);
}

}  // namespace
}  // namespace cuaudit::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cuaudit::FuzzInput input(data, size);
  const std::uint32_t which = input.Below(7);
  const std::string_view text = input.Rest();
  if (which == 0) cuaudit::fuzz::TrySettings(text);
  if (which == 1) cuaudit::fuzz::TryCounts(text);
  if (which == 2) cuaudit::fuzz::TryDetect(text);
  if (which == 3) cuaudit::fuzz::TryBenign(std::string(text));
  if (which == 4) cuaudit::fuzz::TryHows(text);
  if (which == 5) cuaudit::fuzz::TrySuppressions(text);
  if (which == 6) cuaudit::fuzz::TryBaseline(text);
  return 0;
}
