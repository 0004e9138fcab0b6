// SPDX-License-Identifier: MIT
// arguments.h: what one call record says about its outcome and about the handles among its arguments.
//
//   Owns      nothing; constant tables.
//   Threads   safe everywhere; no state.
//   Errors    never fails.
//   Faults    makes no driver calls.
//   Source    CUDA Driver API 13.0. Texture objects, surface objects and allocation handles are plain integers in the headers, which
//             shape.h cannot tell from flags; the table in arguments.cc names them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "faults/driver/call_id.h"
#include "faults/driver/effects.h"
#include "faults/driver/kinds.h"
#include "faults/driver/shape.h"
#include "faults/journal/record.h"

namespace cuaudit::harness {

enum class Outcome : std::uint8_t {
  Succeeded,
  After,       // the driver did it, the caller was told that it failed
  Refused,     // by the plan, or by a driver whose context was lost
  Failed,      // by the driver
  Unfinished,  // entered, never returned
  TornDown,    // the driver had been deinitialised: nothing is left to release
};

Outcome OutcomeOf(const faults::Record& record) noexcept;

// A release with this outcome leaves nothing behind that the program could still release.
constexpr bool Releases(Outcome outcome) {
  return outcome == Outcome::Succeeded || outcome == Outcome::After || outcome == Outcome::Unfinished || outcome == Outcome::TornDown;
}

// The family of handle that argument `index` really carries; None where it is a flag, a hint or a question about an address.
driver::Family ArgumentFamily(driver::CallId call, std::size_t index) noexcept;

// Argument number `index`, 0 for an index outside the record.
constexpr std::uint64_t ArgumentAt(const faults::Record& record, int index) {
  if (index < 0 || index >= static_cast<int>(faults::kRecordArguments)) return 0;
  return record.argument[index];
}

// The size that an acquiring call asks for.
std::uint64_t BytesOf(const faults::Record& record, const driver::EffectRow& row) noexcept;

// The pool, graph, library or green context that the new object is made from.
std::uint64_t ParentOf(const faults::Record& record, const driver::EffectRow& row) noexcept;

inline constexpr std::uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

// Null, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD: one of the current context, which nobody made.
constexpr bool IsStandardStream(std::uint64_t stream) { return stream <= kPerThreadStream; }

constexpr driver::CallId CallOf(const faults::Record& record) { return static_cast<driver::CallId>(record.call); }
constexpr driver::BaseId BaseOf(const faults::Record& record) { return driver::BaseOf(CallOf(record)); }

}  // namespace cuaudit::harness
