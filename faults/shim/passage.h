// SPDX-License-Identifier: MIT
// passage.h: one call on its way through a gate.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "passage.h needs __CUDA_API_VERSION_INTERNAL defined for the whole translation unit"
#endif

#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/driver/call_shape.h"
#include "faults/journal/record.h"
#include "faults/plan/fault.h"

namespace cuaudit::faults {

// `value` holds arguments as passed; for outputs the address that the call writes to.
struct Passage {
  driver::CallId id{};
  std::uint64_t value[driver::kMaxParameters] = {};
  std::uint64_t child = 0;       // the graph that a node is made of, as given: the driver writes the copy's handle over it
  std::uint32_t occurrence = 0;  // how many of its name there were by then; 0: nested, or no journal
  std::uint64_t stream = 0;      // where the work is queued, if that is `captured`
  Record* record = nullptr;
  const class Gate* outer = nullptr;  // the gate this thread was inside of before, and its call's ticket
  std::uint64_t outer_begin = 0;
  CUresult injected = CUDA_SUCCESS;
  How how = How::Refuse;
  bool forward = true;
  bool captured = false;
};

}  // namespace cuaudit::faults
