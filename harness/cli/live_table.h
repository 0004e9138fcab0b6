// SPDX-License-Identifier: MIT
// live_table.h: how many objects of each kind a run acquired, released and left.
#pragma once

#include <vector>

#include "harness/ledger/ledger.h"
#include "reports/run.h"

namespace cuaudit::harness {

// In the order of the kinds; kinds of which nothing was acquired have no row.
std::vector<report::LiveRow> LiveTable(const Ledger& ledger);

}  // namespace cuaudit::harness
