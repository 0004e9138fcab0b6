// SPDX-License-Identifier: MIT
// table.h: the one driver table of all simulated worlds.
//
//   Owns      a constant.
//   Threads   safe everywhere; no state.
//   Faults    makes no driver calls.
//   Source    bindings.def.
#pragma once

#include "faults/driver/driver_ref.h"

namespace cuaudit::sim {

extern const driver::DriverTable kTable;

}  // namespace cuaudit::sim
