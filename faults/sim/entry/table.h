// SPDX-License-Identifier: MIT
// table.h: the driver table that all simulated worlds share, made from bindings.def.
#pragma once

#include "faults/driver/driver_ref.h"

namespace cuaudit::sim {

extern const driver::DriverTable kTable;

}  // namespace cuaudit::sim
