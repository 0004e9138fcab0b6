// SPDX-License-Identifier: MIT
// drain.h: waits for queued work.
//
//   Threads   the caller holds the world's lock, which is released for host functions and while another thread runs one.
//   Errors    an operation that fails makes its context sticky.
#pragma once

#include "faults/sim/state/call.h"

namespace cuaudit::sim {

// Waits for what is queued now.
void Drain(Call& call, Stream* stream) noexcept;
// With `green`: only that green context's streams.
void DrainContext(Call& call, Context* context, const GreenContext* green = nullptr) noexcept;
void DrainMarker(Call& call, Marker* marker) noexcept;
// Waits for the legacy stream, and so for every blocking one.
void DrainLegacy(Call& call, Context* context) noexcept;

}  // namespace cuaudit::sim
