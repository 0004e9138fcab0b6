// SPDX-License-Identifier: MIT
// arguments.h: how a recorded call was answered, and the handles among its arguments.
//
//   Source    CUDA Driver API 13.0. The headers declare texture objects, surface objects and allocation handles as plain integers, which
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

enum class Answer : std::uint8_t {
  Succeeded,
  After,       // the driver carried the call out, and the caller was told that it failed
  Refused,     // by the plan, or because the context was lost
  Failed,      // by the driver
  Unfinished,  // the call never returned
  TornDown,    // the driver had been deinitialised, so nothing is left to release
};

Answer AnswerOf(const faults::Record& record) noexcept;
// True when the driver answered that it knows no such memory, or died of it.
bool SaysNoSuchMemory(const faults::Record& record) noexcept;

// True when nothing is left for the program to release after a release with this answer.
constexpr bool Releases(Answer answer) {
  return answer == Answer::Succeeded || answer == Answer::After || answer == Answer::Unfinished || answer == Answer::TornDown;
}

// The handle family of argument `index`; None when the argument is a flag, a hint or an address that is only asked about.
driver::Family ArgumentFamily(driver::CallId call, std::size_t index) noexcept;

// Argument number `index`; 0 for an index that the record does not hold.
constexpr std::uint64_t ArgumentAt(const faults::Record& record, int index) {
  if (index < 0 || index >= static_cast<int>(faults::kRecordArguments)) return 0;
  return record.argument[index];
}

// Number that names the object which `row` says the call acquires or releases; 0 for none. Peer access is named by two contexts, the one
// that has access and the one whose memory it may use. Its number is made of both handles.
std::uint64_t ObjectHandle(const faults::Record& record, const driver::EffectRow& row) noexcept;

// The size in bytes that an acquiring call asks for.
std::uint64_t BytesOf(const faults::Record& record, const driver::EffectRow& row) noexcept;

// The pool, graph, library or green context that the new object is made from; of peer access the context whose memory may be used.
std::uint64_t ParentOf(const faults::Record& record, const driver::EffectRow& row) noexcept;

inline constexpr std::uint64_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

// Null, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD: a stream of the current context that no call made.
constexpr bool IsStandardStream(std::uint64_t stream) { return stream <= kPerThreadStream; }

}  // namespace cuaudit::harness
