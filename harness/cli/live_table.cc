// SPDX-License-Identifier: MIT
#include "harness/cli/live_table.h"

#include <array>
#include <string>
#include <utility>

namespace cuaudit::harness {

std::vector<report::LiveRow> LiveTable(const Ledger& ledger) {
  std::array<report::LiveRow, driver::kKindCount> rows;
  for (const Object& object : ledger.objects) {
    if (object.driver_owned || object.part_of_other || object.library_kept || driver::DiesWithOf(object.kind) == driver::DiesWith::Parent)
      continue;
    report::LiveRow& row = rows[static_cast<std::size_t>(object.kind)];
    ++row.acquired;
    if (object.state == State::Released) {
      ++row.released;
    } else if (object.state == State::Orphaned) {
      ++row.orphaned;
    } else {
      ++row.live;
      row.bytes += object.bytes;
    }
  }
  std::vector<report::LiveRow> table;
  for (std::size_t kind = 0; kind < rows.size(); ++kind) {
    if (rows[kind].acquired == 0) continue;
    rows[kind].kind = std::string(driver::Name(static_cast<driver::Kind>(kind)));
    table.push_back(std::move(rows[kind]));
  }
  return table;
}

}  // namespace cuaudit::harness
