// SPDX-License-Identifier: MIT
// device_attributes.h: the profile of the simulated device.
//
//   Owns      a constant table.
//   Threads   safe everywhere; no state.
//   Errors    an attribute without a row is 0: the device cannot do it.
//   Faults    makes no driver calls.
//   Source    attributes of an H200 (compute 9.0, 132 multiprocessors); what the simulator does not model reads as unsupported.
#pragma once

#include <cuda.h>

namespace cuaudit::sim {

int DeviceAttribute(CUdevice_attribute attribute) noexcept;

}  // namespace cuaudit::sim
