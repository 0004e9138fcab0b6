// SPDX-License-Identifier: MIT
#include "harness/options/sweep_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "harness/sweep/plan/make_plan.h"

namespace cuaudit::harness {
namespace {

// Reads "97" or "97.5" as tenths of a percent.
Result<std::uint64_t> ParsePercent(const std::string& text) {
  const Status wrong(Exit::Usage, OptionFlag{"--coverage-at-least"},
                     "'" + text + "': expected a percentage from 0 to 100, with at most one decimal");
  const std::size_t point = text.find('.');
  const std::string whole = text.substr(0, point);
  const std::string tenth = point == std::string::npos ? "0" : text.substr(point + 1);
  const auto digits = [](const std::string& part) { return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos; };
  if (!digits(whole) || !digits(tenth) || whole.size() > 3 || tenth.size() > 1) return wrong;
  const std::uint64_t value = std::stoull(whole) * 10 + std::stoull(tenth);
  if (value > 1000) return wrong;
  return value;
}

}  // namespace

Status AddBenign(const std::vector<std::string>& texts, std::vector<Benign>* declared) {
  for (const std::string& text : texts) {
    Result<Benign> benign = ParseBenign(text);
    if (!benign.ok()) return benign.status();
    const bool again = std::any_of(declared->begin(), declared->end(), [&](const Benign& one) { return one.text == text; });
    if (!again) declared->push_back(std::move(*benign));
  }
  return {};
}

Result<EngineOptions> EngineOptionsOf(const Options& options) {
  EngineOptions sweep;
  sweep.plan.hows = SplitCommas(options.how);
  sweep.plan.all_codes = options.codes == "all";
  sweep.plan.calls = options.call;
  sweep.plan.limit = options.limit;
  sweep.plan.prune = options.no_prune ? Pruning::None : options.prune == "all" ? Pruning::All : Pruning::Second;
  sweep.depth = static_cast<int>(options.depth);
  sweep.shrink = !options.no_shrink;
  sweep.judge.abandoned_is_leak = options.abandoned_is_leak;
  sweep.judge.exit_is_said = options.strict_exit;
  sweep.judge.own_orphans_count = options.orphans == "finding";
  const Status benign = AddBenign(options.benign, &sweep.benign);
  if (!benign.ok()) return Status(benign.exit(), OptionFlag{"--benign"}, benign.message());
  if (!options.coverage_at_least.empty()) {
    const Result<std::uint64_t> tenths = ParsePercent(options.coverage_at_least);
    if (!tenths.ok()) return tenths.status();
    sweep.coverage_at_least = *tenths;
  }
  Status usable = CheckPlanOptions(sweep.plan);
  return usable.ok() ? Result<EngineOptions>(std::move(sweep)) : usable;
}

Result<std::optional<std::chrono::seconds>> ParseBudget(const std::string& text) {
  if (text.empty()) return std::optional<std::chrono::seconds>();
  constexpr std::pair<std::string_view, std::uint32_t> kUnits[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
  constexpr std::uint32_t kMost = 1000000;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, seconds] : kUnits) {
    if (error == std::errc() && unit == name && number != 0 && number <= kMost) {
      return std::optional(std::chrono::seconds(std::uint64_t{number} * seconds));
    }
  }
  return Status(Exit::Usage, OptionFlag{"--budget"},
                "'" + text + "': expected a time from 1 to " + std::to_string(kMost) + " with s, min or h: 10min");
}

}  // namespace cuaudit::harness
