// SPDX-License-Identifier: MIT
#include "harness/cli/audit_sum.h"

#include <cstdint>
#include <map>
#include <set>

namespace cuaudit::harness {

AuditSum SumOf(const std::vector<bool>& selected, const std::vector<CaseSeen>& seen) {
  AuditSum sum;
  std::size_t asked = 0;
  std::size_t with_defects = 0;
  std::size_t clean = 0;
  std::size_t cut = 0;
  std::size_t without = 0;
  std::uint64_t defects = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!selected[i]) continue;
    const CaseSeen& one = seen[i];
    ++asked;
    sum.exit = Worse(sum.exit, one.exit);
    defects += one.defects;
    const bool is_clean = one.exit == Exit::Clean && !one.line.empty() && one.signal == 0 && !one.cut;
    with_defects += one.exit == Exit::Findings ? 1 : 0;
    cut += one.cut ? 1 : 0;  // whether it has defects or not
    clean += is_clean ? 1 : 0;
    without += one.exit != Exit::Findings && !one.cut && !is_clean ? 1 : 0;
  }
  const auto of = [](std::uint64_t count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); };
  sum.line =
      of(asked, "case") + ": " + of(defects, "defect") + " in " + std::to_string(with_defects) + ", " + std::to_string(clean) + " clean";
  if (cut != 0) sum.line += ", " + std::to_string(cut) + " cut short by the budget";
  if (without != 0) sum.line += ", " + std::to_string(without) + " without a result";
  return sum;
}

std::vector<std::string> UnusedSuppressions(const std::vector<ProjectCase>& cases, const std::vector<CaseSeen>& seen) {
  std::map<std::string, std::vector<std::string>> by_file;
  std::set<std::string> unknown;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string& file = cases[i].options.suppressions;
    if (file.empty()) continue;
    if (!seen[i].complete) unknown.insert(file);
    const auto [unused, is_first] = by_file.emplace(file, seen[i].unused_suppressions);
    if (!is_first) KeepCommon(seen[i].unused_suppressions, &unused->second);
  }
  std::vector<std::string> places;
  for (const auto& [file, unused] : by_file) {
    if (!unknown.contains(file)) places.insert(places.end(), unused.begin(), unused.end());
  }
  return places;
}

}  // namespace cuaudit::harness
