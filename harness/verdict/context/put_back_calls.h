// SPDX-License-Identifier: MIT
// put_back_calls.h: what one call changes or needs of the current context of its thread and of the capture of a stream (put_back.h), which
// contexts a process no longer has, and functions that work in another context than their callers' for a part of a thread's run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "faults/driver/effects.h"
#include "faults/journal/record.h"
#include "harness/verdict/evidence/evidence.h"
#include "harness/verdict/evidence/finding.h"

namespace cuaudit::harness {

[[nodiscard]] driver::Effect EffectOfCall(const faults::Record& record);
[[nodiscard]] std::uint64_t StreamOf(const faults::Record& record);
[[nodiscard]] bool NamesStream(const faults::Record& record, std::uint64_t stream);
[[nodiscard]] bool SwitchesContext(const faults::Record& record, driver::Effect effect);
[[nodiscard]] bool OnlyLooks(const faults::Record& record, driver::Effect effect);
[[nodiscard]] bool NeedsCurrent(const faults::Record& record, driver::Effect effect);
void Follow(const faults::Record& record, driver::Effect effect, int* above);

// The contexts that no longer exist, are no longer the program's, or would not exist if the plan had not refused their end.
[[nodiscard]] bool IsGone(const Evidence& run, std::uint32_t pid, std::uint64_t context, std::uint64_t when);

// Adds a change that was not undone, and the call that then met with it; null: none did. Changes with the same places are one finding,
// which is answered.
TrialFinding* AddChange(const Evidence& trial, Rule rule, driver::Kind kind, const faults::Record& change, const faults::Record* met,
                        std::vector<TrialFinding>* findings);

inline constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

// A part of a thread's run in which a function works in another context than its caller's. Calls are numbers of the run's calls
// (Facts::calls).
//
// A change that is not undone there leaves the context of that function. When the function made the change itself, it goes on to yet
// another context, or puts its caller's back: it owes nothing. When a function that it called made the change, that one returned in another
// context than it was called in.
struct Away {
  std::size_t from = kNoCall;                         // the change; kNoCall: nobody knows of which function
  std::size_t until = kNoCall;                        // the first call after the one that undoes it
  bool from_none = false;                             // no context was current before
  std::optional<std::uint64_t> frame = std::nullopt;  // that called the function, once somebody asked; 0: unknown
};

void DropBefore(std::size_t call, std::vector<Away>* all);

// The innermost function of `all` that is away at a call, as the index of the frame that called it in the stack of that call: a function
// that was called from a frame with a smaller index runs within it. 0 when that is unknown. Where `only_from_none`, one that had a context
// before counts as unknown. The frame is looked for and not counted to, because call stacks are cut at --stacks frames.
[[nodiscard]] std::size_t InnermostAway(const Evidence& run, std::size_t call, std::vector<Away>* all, bool only_from_none);

}  // namespace cuaudit::harness
